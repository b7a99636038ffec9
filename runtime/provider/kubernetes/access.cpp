#include "runtime/provider/kubernetes/access.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "runtime/base/base64.hpp"
#include "runtime/base/id.hpp"
#include "runtime/loop/command.hpp"
#include "runtime/store/file.hpp"

namespace rille::provider {

namespace {

constexpr const char* account_folder = "/var/run/secrets/kubernetes.io/serviceaccount/";
constexpr std::int64_t token_lasts_us = 60'000'000;  // a file rotates, and a plug-in keeps its own

Error wrong(std::string what, std::string hint = "kubectl config view --minify shows what is used") {
  return make_error(ErrorKind::config, "kubernetes: " + std::move(what), std::move(hint));
}

// Paths in a kubeconfig are relative to it.
std::string beside(const std::string& kubeconfig, const std::string& path) {
  if (path.empty()) return path;
  return std::filesystem::path(kubeconfig).parent_path() / path;
}

// kubeconfig is YAML, and JSON is YAML as well.
Async<Value> read_config(Loop& loop, std::string file, CancelToken token) {
  CommandOptions view;
  view.argv = {"kubectl", "config", "view", "--raw", "--minify", "--flatten", "-o", "json"};
  if (file.find(':') == std::string::npos) {  // else several, which kubectl merges
    RILLE_CO_TRY(const std::string text, store::read_file(file, 4 << 20));
    if (Result<Value> read = Value::from_json(text); read && read->as_object()) co_return std::move(*read);
    view.argv.insert(view.argv.end(), {"--kubeconfig", file});
  }
  Result<CommandResult> done = co_await run_command(loop, std::move(view), token);
  if (!done) co_return wrong(fmt::format("'{}' needs kubectl to be read", file), "install kubectl");
  if (!done->ok()) co_return wrong(fmt::format("kubectl cannot read '{}': {}", file, done->last_words()));
  co_return Value::from_json(done->out);
}

// Of `key`, whose data stand in the file or in a file that it names, beside it unless its path is absolute.
Result<std::string> pem_of(const Value& object, const std::string& key, const std::string& kubeconfig) {
  if (const std::string data = object.text(key + "-data"); !data.empty()) return from_base64(data);
  const std::string file = object.text(key);
  if (file.empty()) return std::string();
  return store::read_file(beside(kubeconfig, file), 1 << 20);
}

const Value& named(const Value& list, const std::string& name) {
  static const Value none;
  for (std::size_t i = 0; list.as_array() && i < list.as_array()->size(); ++i)
    if ((*list.as_array())[i].text("name") == name) return (*list.as_array())[i];
  return none;
}

Result<KubeAccess> from_account() {
  const std::string host = cloud::environment("KUBERNETES_SERVICE_HOST");
  if (host.empty())
    return wrong("no cluster is named", "set KUBECONFIG, or \"kubeconfig\" in the provider's settings");
  KubeAccess out;
  out.server = fmt::format("https://{}:{}", host, cloud::environment("KUBERNETES_SERVICE_PORT"));
  out.ca_file = std::string(account_folder) + "ca.crt";
  const Result<std::string> name_space = store::read_file(std::string(account_folder) + "namespace", 4096);
  out.name_space = name_space ? *name_space : "default";
  out.user.set("tokenFile", std::string(account_folder) + "token");
  return out;
}

}  // namespace

Async<KubeAccess> find_kube_access(Loop& loop, std::string kubeconfig, std::string cache, CancelToken token) {
  if (kubeconfig.empty()) kubeconfig = cloud::environment("KUBECONFIG");
  if (kubeconfig.empty()) {
    const std::string usual = cloud::environment("HOME") + "/.kube/config";
    if (!store::read_file(usual, 4 << 20)) co_return from_account();
    kubeconfig = usual;
  }
  RILLE_CO_TRY(const Value config, co_await read_config(loop, kubeconfig, token));
  const std::string current = config.text("current-context");
  const Value& context = named(config["contexts"], current)["context"];
  const Value& cluster = named(config["clusters"], context.text("cluster"))["cluster"];
  KubeAccess out;
  out.server = cluster.text("server");
  if (out.server.empty())
    co_return wrong(fmt::format("'{}' names no server for its context '{}'", kubeconfig, current));
  out.name_space = context.text("namespace", "default");
  out.user = named(config["users"], context.text("user"))["user"];
  if (cluster.boolean("insecure-skip-tls-verify"))
    co_return wrong(fmt::format("'{}' skips the verification of its server", kubeconfig),
                    "name the cluster's certificate: certificate-authority");
  if (const std::string file = out.user.text("tokenFile"); !file.empty())
    out.user.set("tokenFile", beside(kubeconfig, file));
  RILLE_CO_TRY(out.client_certificate, pem_of(out.user, "client-certificate", kubeconfig));
  RILLE_CO_TRY(out.client_key, pem_of(out.user, "client-key", kubeconfig));
  if (out.client_certificate.empty() != out.client_key.empty())
    co_return wrong(fmt::format("'{}' has only one of client-certificate and client-key", kubeconfig));
  out.ca_file = beside(kubeconfig, cluster.text("certificate-authority"));
  if (const std::string data = cluster.text("certificate-authority-data"); !data.empty()) {
    RILLE_CO_TRY(const std::string pem, from_base64(data));
    RILLE_CO_CHECK(store::make_directories(cache));
    out.ca_file = cache + "/kubernetes-" + derive_hex({pem}, 16) + ".pem";
    RILLE_CO_CHECK(store::write_file_atomic(out.ca_file, pem, 0600));
  }
  co_return out;
}

Async<std::optional<cloud::FoundKeys>> kube_token(Loop& loop, Value user, CancelToken token) {
  cloud::FoundKeys out;
  out.from = "kubeconfig";
  out.keys.token = user.text("token");
  if (!out.keys.token.empty()) co_return std::optional<cloud::FoundKeys>(std::move(out));
  out.expires_wall_us = loop.clock().wall_us() + token_lasts_us;
  if (const std::string file = user.text("tokenFile"); !file.empty()) {
    RILLE_CO_TRY(out.keys.token, store::read_file(file, 1 << 20));
    out.keys.token.erase(out.keys.token.find_last_not_of(" \r\n") + 1);
    co_return std::optional<cloud::FoundKeys>(std::move(out));
  }
  const Value& plug_in = user["exec"];
  if (!plug_in.as_object()) co_return std::optional<cloud::FoundKeys>();
  CommandOptions ask;
  ask.argv.push_back(plug_in.text("command"));
  for (const Value& word : plug_in["args"].as_array() ? *plug_in["args"].as_array() : Value::Array())
    if (word.as_string()) ask.argv.push_back(*word.as_string());
  for (const Value& one : plug_in["env"].as_array() ? *plug_in["env"].as_array() : Value::Array())
    ask.env.emplace_back(one.text("name"), one.text("value"));
  const std::string program = ask.argv.front();
  RILLE_CO_TRY(const CommandResult done, co_await run_command(loop, std::move(ask), token));
  const Result<Value> told = Value::from_json(done.out);
  if (done.ok() && told) out.keys.token = (*told)["status"].text("token");
  if (out.keys.token.empty())
    co_return make_error(ErrorKind::auth, fmt::format("kubernetes: the plug-in '{}' gives no token", program),
                         fmt::format("it ended with {}. Does it work with kubectl? What it says is not shown here, for "
                                     "it may hold keys", done.status.text()));
  co_return std::optional<cloud::FoundKeys>(std::move(out));
}

}  // namespace rille::provider
