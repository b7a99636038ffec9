#include "runtime/workflow/provider/kubernetes/access.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/loop/command.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::provider {

namespace {

constexpr const char* account_folder = "/var/run/secrets/kubernetes.io/serviceaccount/";
constexpr std::int64_t token_lasts_us = 60'000'000;  // ask again after 60 s: files rotate, plug-ins cache tokens

Error wrong(std::string what, std::string hint = "kubectl config view --minify shows what is used") {
  return make_error(ErrorKind::config, "kubernetes: " + std::move(what), std::move(hint));
}

// Resolves a path that a kubeconfig contains: it is relative to the kubeconfig's folder.
std::string beside(const std::string& kubeconfig, const std::string& path) {
  if (path.empty()) return path;
  return std::filesystem::path(kubeconfig).parent_path() / path;
}

// Reads a kubeconfig. One JSON file is parsed here; YAML, or several files, are converted to JSON by kubectl.
Async<Value> read_config(Loop& loop, std::string file, std::string context, CancelToken token) {
  CommandOptions view;
  view.argv = {"kubectl", "config", "view", "--raw", "--minify", "--flatten", "-o", "json"};
  if (!context.empty()) view.argv.push_back("--context=" + context);
  if (file.find(':') == std::string::npos) {  // one file; only kubectl merges several
    RILLE_CO_TRY(const std::string text, store::read_file(file, 4 << 20));
    if (Result<Value> read = Value::from_json(text); read && read->as_object()) co_return std::move(*read);
    view.argv.insert(view.argv.end(), {"--kubeconfig", file});
  } else {
    view.env.emplace_back("KUBECONFIG", file);
  }
  Result<CommandResult> done = co_await run_command(loop, std::move(view), token);
  if (!done) co_return wrong(fmt::format("kubectl is needed to read '{}'", file), "install kubectl");
  if (!done->ok()) co_return wrong(fmt::format("kubectl cannot read '{}': {}", file, done->last_words()));
  co_return Value::from_json(done->out);
}

// The PEM text of a kubeconfig entry: from KEY-data, else from the file that KEY names, relative to the kubeconfig.
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

Error no_context(const std::string& file, const std::string& context, const Value& contexts) {
  std::vector<std::string> names;
  for (const Value& one : contexts.as_array() ? *contexts.as_array() : Value::Array())
    names.push_back(one.text("name"));
  const std::string near = did_you_mean(context, names);
  return wrong(fmt::format("'{}' has no context '{}'", file, context),
               near.empty() ? "kubectl config get-contexts lists them" : fmt::format("did you mean '{}'?", near));
}

// The cluster information for a credential plug-in: fields of the kubeconfig's cluster and its extension for plug-ins.
Value told_of(const Value& cluster, const std::string& ca_pem) {
  Value out;
  for (const char* key : {"server", "tls-server-name", "proxy-url"})
    if (const std::string text = cluster.text(key); !text.empty()) out.set(key, text);
  if (!ca_pem.empty()) out.set("certificate-authority-data", to_base64(ca_pem));
  const Value& more = named(cluster["extensions"], "client.authentication.k8s.io/exec")["extension"];
  if (!more.is_null()) out.set("config", more);
  return out;
}

Result<KubeAccess> from_account() {
  const std::string host = net::environment("KUBERNETES_SERVICE_HOST");
  if (host.empty()) return wrong("no cluster is named", "set KUBECONFIG, or \"kubeconfig\" in the provider's settings");
  KubeAccess out;
  out.server = fmt::format("https://{}:{}", host, net::environment("KUBERNETES_SERVICE_PORT"));
  out.ca_file = std::string(account_folder) + "ca.crt";
  const Result<std::string> name_space = store::read_file(std::string(account_folder) + "namespace", 4096);
  out.name_space = name_space ? *name_space : "default";
  out.user.set("tokenFile", std::string(account_folder) + "token");
  return out;
}

}  // namespace

Async<KubeAccess> find_kube_access(Loop& loop, std::string kubeconfig, std::string context, std::string cache,
                                   CancelToken token) {
  if (kubeconfig.empty()) kubeconfig = net::environment("KUBECONFIG");
  if (kubeconfig.empty()) {
    const std::string usual = net::environment("HOME") + "/.kube/config";
    if (!store::read_file(usual, 4 << 20)) {
      if (!context.empty())
        co_return wrong(fmt::format("context = '{}' is set, but there is no kubeconfig file", context),
                        "set KUBECONFIG");
      co_return from_account();
    }
    kubeconfig = usual;
  }
  RILLE_CO_TRY(const Value config, co_await read_config(loop, kubeconfig, context, token));
  if (!context.empty() && named(config["contexts"], context).is_null())
    co_return no_context(kubeconfig, context, config["contexts"]);
  const std::string current = context.empty() ? config.text("current-context") : context;
  const Value& chosen = named(config["contexts"], current)["context"];
  const Value& cluster = named(config["clusters"], chosen.text("cluster"))["cluster"];
  KubeAccess out;
  out.server = cluster.text("server");
  if (out.server.empty())
    co_return wrong(fmt::format("'{}' names no server for its context '{}'", kubeconfig, current));
  out.name_space = chosen.text("namespace", "default");
  out.user = named(config["users"], chosen.text("user"))["user"];
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
  std::string ca_pem;
  if (const std::string data = cluster.text("certificate-authority-data"); !data.empty()) {
    RILLE_CO_TRY(ca_pem, from_base64(data));
    RILLE_CO_CHECK(store::make_directories(cache));
    out.ca_file = cache + "/kubernetes-" + derive_hex({ca_pem}, 16) + ".pem";
    RILLE_CO_CHECK(store::write_file_atomic(out.ca_file, ca_pem, 0600));
  } else if (out.user["exec"].boolean("provideClusterInfo") && !out.ca_file.empty()) {
    RILLE_CO_TRY(ca_pem, store::read_file(out.ca_file, 1 << 20));
  }
  out.cluster = told_of(cluster, ca_pem);
  co_return out;
}

namespace {

// The command and environment of a credential plug-in, as in client-go. Plug-ins get no terminal.
Result<CommandOptions> plug_in_command(const Value& plug_in, const Value& cluster) {
  CommandOptions out;
  out.argv.push_back(plug_in.text("command"));
  for (const Value& word : plug_in["args"].as_array() ? *plug_in["args"].as_array() : Value::Array())
    if (word.as_string()) out.argv.push_back(*word.as_string());
  for (const Value& one : plug_in["env"].as_array() ? *plug_in["env"].as_array() : Value::Array())
    out.env.emplace_back(one.text("name"), one.text("value"));
  if (plug_in.text("interactiveMode") == "Always")
    return make_error(ErrorKind::auth, fmt::format("kubernetes: the plug-in '{}' needs a terminal", out.argv.front()),
                      "its interactiveMode is Always: Rille starts it without one");
  Value spec = Value::Object{};
  spec.set("interactive", false);
  if (plug_in.boolean("provideClusterInfo")) spec.set("cluster", cluster);
  Value info;
  info.set("apiVersion", plug_in.text("apiVersion")).set("kind", "ExecCredential").set("spec", std::move(spec));
  out.env.emplace_back("KUBERNETES_EXEC_INFO", info.to_json());
  return out;
}

Async<std::optional<KubeKeys>> ask_plug_in(Loop& loop, Value plug_in, Value cluster, KubeKeys out, CancelToken token) {
  RILLE_CO_TRY(CommandOptions ask, plug_in_command(plug_in, cluster));
  const std::string program = ask.argv.front();
  Result<CommandResult> done = co_await run_command(loop, std::move(ask), token);
  if (!done && done.error().kind == ErrorKind::io)
    co_return make_error(
        ErrorKind::auth,
        fmt::format("kubernetes: the plug-in '{}' cannot be started: {}", program, done.error().message),
        plug_in.text("installHint"));
  if (!done) co_return done.error();
  const Result<Value> told = Value::from_json(done->out);
  const auto gives = [&](const std::string& what) {
    return make_error(ErrorKind::auth, fmt::format("kubernetes: the plug-in '{}' {}", program, what),
                      fmt::format("it ended with {}. Does it work with kubectl? What it says is not shown here, for it "
                                  "may hold keys",
                                  done->status.text()));
  };
  if (!done->ok() || !told) co_return gives("gives no token");
  const Value& status = (*told)["status"];
  out.found.keys.token = status.text("token");
  out.client_certificate = status.text("clientCertificateData");
  out.client_key = status.text("clientKeyData");
  if (out.client_certificate.empty() != out.client_key.empty())
    co_return gives("gives only one of clientCertificateData and clientKeyData");
  if (out.found.keys.token.empty() && out.client_key.empty()) co_return gives("gives no token");
  if (const std::string until = status.text("expirationTimestamp"); !until.empty()) {
    const Result<std::int64_t> us = parse_utc(until);
    if (!us) co_return gives(fmt::format("prints an expiry of its keys that is not a time: '{}'", until));
    out.found.expires_wall_us = *us;
  }
  co_return std::optional<KubeKeys>(std::move(out));
}

}  // namespace

Async<std::optional<KubeKeys>> kube_keys(Loop& loop, Value user, Value cluster, CancelToken token) {
  KubeKeys out;
  out.found.from = "kubeconfig";
  out.found.keys.token = user.text("token");
  if (!out.found.keys.token.empty()) co_return std::optional<KubeKeys>(std::move(out));
  out.found.expires_wall_us = loop.clock().wall_us() + token_lasts_us;
  if (const std::string file = user.text("tokenFile"); !file.empty()) {
    std::string& text = out.found.keys.token;
    RILLE_CO_TRY(text, store::read_file(file, 1 << 20));
    text.erase(text.find_last_not_of(" \r\n") + 1);
    co_return std::optional<KubeKeys>(std::move(out));
  }
  if (!user["exec"].as_object()) co_return std::optional<KubeKeys>();
  co_return co_await ask_plug_in(loop, user["exec"], std::move(cluster), std::move(out), std::move(token));
}

}  // namespace rille::provider
