#include "bindings/host/grants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "bindings/host/real_path.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/net/server.hpp"

namespace rille::host {

namespace {

constexpr const char* own_folder = "rille.home";
constexpr const char* kinds[] = {"read", "write", "env", "process", "network", "kernels", "providers", "all"};

// These links are not followed: they lead to whatever file the process has open.
bool is_standard_stream(std::string_view path) {
  return path == "/dev/stdin" || path == "/dev/stdout" || path == "/dev/stderr";
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// "[::1]" -> "::1"
std::string without_brackets(const std::string& host) {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

Error unknown_grant(const std::string& name) {
  const std::vector<std::string> known(std::begin(kinds), std::end(kinds));
  const std::string near = did_you_mean(name, known);
  return make_error(ErrorKind::invalid, fmt::format("there is no grant '{}'", name),
                    near.empty() ? "the grants are: read write env process network kernels providers all"
                                 : fmt::format("did you mean '{}'?", near));
}

Error wrong_value(const std::string& name, const Value& value) {
  const bool flag = name == "process" || name == "kernels" || name == "all";
  return make_error(ErrorKind::invalid, fmt::format("the grant {} = {}", name, value.to_json()),
                    flag ? "this grant is true or false" : "this grant is a list of names, or true for all");
}

Result<std::vector<std::string>> names_in(const std::string& grant, const Value& value) {
  std::vector<std::string> out;
  if (const std::string* one = value.as_string()) out.push_back(*one);
  else if (const Value::Array* list = value.as_array())
    for (const Value& name : *list) {
      if (!name.as_string()) return wrong_value(grant, value);
      out.push_back(*name.as_string());
    }
  else return wrong_value(grant, value);
  for (const std::string& name : out)
    if (name.empty() || name.find('\0') != std::string::npos) return wrong_value(grant, value);
  return out;
}

}  // namespace

Error denied(const std::string& what, const std::string& grant, const std::string& value) {
  Error e =
      make_error(ErrorKind::denied,
                 fmt::format("{} needs the grant {} = {}", what, grant, value.empty() ? "true" : "\"" + value + "\""),
                 fmt::format("the host program gives it (grants), or the command: --grant {}{}", grant,
                             value.empty() ? "" : "=" + value));
  e.code = grant;
  return e;
}

bool Grants::List::has(std::string_view name) const {
  return all || std::find(names.begin(), names.end(), name) != names.end();
}

Grants::List* Grants::list_of(Grants& grants, std::string_view name) {
  if (name == "read") return &grants.read_;
  if (name == "write") return &grants.write_;
  if (name == "env") return &grants.env_;
  if (name == "network") return &grants.network_;
  return name == "providers" ? &grants.providers_ : nullptr;
}

Grants Grants::everything() {
  Grants out;
  for (const char* name : kinds)
    if (List* list = list_of(out, name)) list->all = true;
  out.process_ = out.kernels_ = true;
  return out;
}

Result<> Grants::set(const std::string& name, const Value& value, const std::string& folder) {
  if (std::find(std::begin(kinds), std::end(kinds), name) == std::end(kinds)) return unknown_grant(name);
  const bool* yes = value.as_bool();
  List* list = list_of(*this, name);
  if (!list) {
    if (!yes) return wrong_value(name, value);
    if (name == "process") process_ = *yes;
    else if (name == "kernels") kernels_ = *yes;
    else if (*yes) *this = everything();
    return {};
  }
  if (yes) {
    list->all = *yes;
    return {};
  }
  RILLE_TRY(const std::vector<std::string> names, names_in(name, value));
  for (std::string one : names) {
    if (list == &read_ || list == &write_) {
      if (one != own_folder && !is_standard_stream(one)) { RILLE_TRY(one, real_path(one, true, folder)); }
    } else if (list == &network_) {
      one = lower(one);
    }
    if (!list->has(one)) list->names.push_back(std::move(one));
  }
  return {};
}

Result<Grants> Grants::parse(const Value& value, const std::string& folder) {
  Grants out;
  const Value::Array* empty = value.as_array();  // an empty Lua table arrives as an empty list
  if (!value.as_object() && !(empty && empty->empty()))
    return make_error(ErrorKind::invalid, "grants are not an object", R"(write them as {"read": ["/data"]})");
  if (value.as_object())
    for (const auto& [name, granted] : *value.as_object()) RILLE_CHECK(out.set(name, granted, folder));
  return out;
}

Result<Grants> Grants::from_words(const std::vector<std::string>& words) {
  Grants out;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string text = equals == std::string::npos ? "true" : word.substr(equals + 1);
    const Value value = text == "true" || text == "false" ? Value(text == "true") : Value(text);
    RILLE_CHECK(out.set(name, value, {}));
  }
  return out;
}

Value Grants::to_value() const {
  Value out{Value::Object{}};
  if (is_everything()) return out.set("all", true);
  for (auto [name, list] : {std::pair{"read", &read_}, std::pair{"write", &write_}, std::pair{"env", &env_},
                            std::pair{"network", &network_}, std::pair{"providers", &providers_}}) {
    if (list->all) out.set(name, true);
    else if (!list->names.empty()) out.set(name, Value(Value::Array(list->names.begin(), list->names.end())));
  }
  if (process_) out.set("process", true);
  if (kernels_) out.set("kernels", true);
  return out;
}

bool Grants::is_everything() const {
  return read_.all && write_.all && env_.all && network_.all && providers_.all && process_ && kernels_;
}

bool Grants::rents() const { return providers_.all || !providers_.names.empty(); }

bool Grants::names_home() const {
  return (!read_.all && read_.has(own_folder)) || (!write_.all && write_.has(own_folder));
}

void Grants::set_home(const std::string& folder) {
  if (Result<std::string> real = real_path(folder)) home_ = std::move(*real);
}

// --- paths

bool Grants::covers(const List& list, std::string_view path) const {
  return std::any_of(list.names.begin(), list.names.end(), [&](const std::string& root) {
    return root == own_folder ? !home_.empty() && is_below(path, home_) : is_below(path, root);
  });
}

Result<std::string> Grants::path(const List& list, const char* grant, const std::string& path, Names names) const {
  if (list.all) return path;
  const std::string shown = lexical_path(path);
  if (is_standard_stream(shown) && covers(list, shown)) return shown;
  RILLE_TRY(std::string real, real_path(path, names != Names::entry));
  if (!is_standard_stream(shown) && covers(list, real)) {
    if (names == Names::tree) RILLE_CHECK(check_links(list, grant, real));
    return real;
  }
  const std::string verb = &list == &read_ ? "reading" : "writing";
  // The script may learn the target of a link only if the link itself is inside a granted folder.
  const std::string& meant = covers(list, shown) && !is_standard_stream(shown) ? real : shown;
  const std::string what =
      meant == shown ? fmt::format("{} {}", verb, shown) : fmt::format("{} {}, a link to {},", verb, shown, meant);
  std::string root = meant;
  if (names != Names::tree && !is_standard_stream(meant)) root = std::filesystem::path(meant).parent_path().string();
  return denied(what, grant, root);
}

// A folder is read and written as a whole, so no link in it may lead out of the granted folders.
Result<> Grants::check_links(const List& list, const char* grant, const std::string& folder) const {
  std::error_code ec;
  if (!std::filesystem::is_directory(folder, ec)) return {};
  std::filesystem::recursive_directory_iterator it(folder, ec), end;
  for (; !ec && it != end; it.increment(ec))
    if (it->is_symlink(ec)) RILLE_CHECK(path(list, grant, it->path().string(), Names::file));
  return {};
}

Result<std::string> Grants::read(const std::string& name, Names names) const {
  return path(read_, "read", name, names);
}

Result<std::string> Grants::write(const std::string& name, Names names) const {
  return path(write_, "write", name, names);
}

Result<std::string> Grants::open(const std::string& name, std::string_view mode) const {
  const bool both = mode.find('+') != std::string_view::npos, writes = mode.starts_with('w') || mode.starts_with('a');
  if (!both) return writes ? write(name) : read(name);
  RILLE_CHECK(read(name));
  return write(name);
}

Result<std::string> Grants::read_code(const std::string& name, const std::string& folder) const {
  if (read_.all) return name;
  RILLE_TRY(std::string real, real_path(name));
  if (!folder.empty()) {
    RILLE_TRY(const std::string root, real_path(folder));
    if (is_below(real, root)) return real;
  }
  return read(name);
}

// --- environment, processes, network and providers

Result<> Grants::env(const std::string& name) const {
  if (env_.has(name)) return {};
  return denied("reading the environment variable " + name, "env", name);
}

Result<> Grants::process(const std::string& what) const {
  if (process_) return {};
  return denied(what, "process");
}

Result<> Grants::kernels(const std::string& what) const {
  if (kernels_) return {};
  return denied(what, "kernels");
}

Result<> Grants::connect(const std::string& what, const std::string& host, const std::string& port) const {
  const std::string name = without_brackets(lower(host));
  const std::string server = name.find(':') == std::string::npos ? name : "[" + name + "]";
  const std::string with_port = port.empty() ? server : server + ":" + port;
  if (network_.has(name) || network_.has(server) || network_.has(with_port)) return {};
  return denied(fmt::format("{} at {}", what, with_port), "network", with_port);
}

Result<> Grants::connect_to_url(const std::string& what, const std::string& url) const {
  if (network_.all) return {};
  RILLE_TRY(const net::Server server, net::server_of(url));
  return connect(what, server.host, server.port);
}

Result<> Grants::send_mail(const std::string& what, const std::string& address) const {
  if (network_.has(lower(address))) return {};
  return denied(fmt::format("{} to {}", what, address), "network", address);
}

Result<> Grants::keys(const std::string& what, const std::string& provider) const {
  if (providers_.has(provider)) return {};
  return denied(fmt::format("{} with the keys of {}", what, provider), "providers", provider);
}

Result<> Grants::choose_providers(const std::string& what, Value& query, bool rents) const {
  const bool local = process_ || !rents;
  if (providers_.all && local) return {};
  std::vector<std::string> named;
  for (const char* key : {"provider", "providers"}) {
    if (query[key].is_null()) continue;
    const Result<std::vector<std::string>> more = names_in("providers", query[key]);
    if (!more)
      return make_error(ErrorKind::invalid, fmt::format("{}: {} = {}", what, key, query[key].to_json()),
                        "a name or a list of names");
    named.insert(named.end(), more->begin(), more->end());
  }
  for (const std::string& name : named) {
    if (!providers_.has(name)) return denied(fmt::format("{} from {}", what, name), "providers", name);
    if (name == "local" && !local) return process(what + " from local, which starts processes on this machine,");
  }
  if (!named.empty()) return {};
  if (providers_.all) return process(what + " without a provider, which may choose this machine,");
  Value::Array granted;
  for (const std::string& name : providers_.names)
    if (name != "local" || local) granted.emplace_back(name);
  if (granted.empty() && !providers_.names.empty()) return process(what + " from local");
  if (granted.empty()) return denied(what, "providers", "local");
  query.set("providers", Value(std::move(granted)));
  return {};
}

}  // namespace rille::host
