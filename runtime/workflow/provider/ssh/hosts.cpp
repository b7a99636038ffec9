#include "runtime/workflow/provider/ssh/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/workflow/provider/cloud/settings.hpp"

namespace rille::provider {

namespace {

constexpr const char* known[] = {"address", "name", "port", "identity", "directory", "region", "slots", "price"};
constexpr const char* numbers[] = {"port", "slots", "price"};  // the other fields are strings

template <std::size_t N>
bool is_one_of(const std::string& word, const char* const (&all)[N]) {
  return std::find(std::begin(all), std::end(all), word) != std::end(all);
}

Error wrong(const std::string& host, std::string what, std::string hint = {}) {
  return make_error(
      ErrorKind::config, fmt::format("ssh host '{}': {}", host, what),
      hint.empty() ? "the fields of a host: address name port identity directory region slots price" : std::move(hint));
}

Result<SshHost> read_host(const Value& v) {
  SshHost host;
  if (const std::string* address = v.as_string()) {
    host.address = host.name = *address;
  } else if (!v.as_object()) {
    return make_error(ErrorKind::config, "ssh: a host is a string or an object, not " + v.to_json(),
                      "as in \"hosts\": [\"me@gpu1\"]");
  } else {
    host.address = v.text("address");
    host.name = v.text("name", host.address);
    host.identity = v.text("identity");
    host.directory = v.text("directory");
    host.region = v.text("region");
    host.port = static_cast<int>(v.integer("port"));
    host.slots = static_cast<int>(v.integer("slots", 1));
    for (const auto& [key, value] : *v.as_object()) {
      if (!is_one_of(key, known)) return wrong(host.name, fmt::format("unknown field '{}'", key));
      if (value.is_null()) continue;
      const bool number = is_one_of(key, numbers);
      if (number ? !value.as_number() : !value.as_string())
        return wrong(host.name, fmt::format("{} = {}", key, value.to_json()),
                     number ? "expected a number, without quotes" : "expected a string");
    }
    if (const double* price = v["price"].as_number()) {
      if (!(*price >= 0)) return wrong(host.name, fmt::format("a price of {} dollars per hour", *price));
      host.price_micros_per_hour = std::llround(*price * 1e6);
    }
  }
  if (host.address.empty()) return wrong(host.name, "the address is missing");
  // ssh would parse an address that begins with '-' as an option.
  if (host.address[0] == '-' || host.address.find_first_of(" \t\n'\"") != std::string::npos)
    return wrong(host.name, fmt::format("'{}' is not an address", host.address), "as in me@gpu1.example.org");
  if (host.name.find('/') != std::string::npos) return wrong(host.name, "a name has no '/'", "give it another `name`");
  if (host.slots < 1)
    return wrong(host.name, fmt::format("slots = {}", host.slots), "how many instances at once: 1 or more");
  if (host.port < 0 || host.port > 65535) return wrong(host.name, fmt::format("port = {}", host.port), "1 to 65535");
  if (!host.directory.empty() && host.directory[0] != '/')
    return wrong(host.name, fmt::format("directory '{}' is not absolute", host.directory), "begin it with '/'");
  return host;
}

}  // namespace

std::vector<std::string> SshHost::prefix() const {
  // BatchMode: ssh asks no questions, so a host with an unknown key is refused.
  std::vector<std::string> out{"ssh", "-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o",
                               "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4",
                               // ssh takes the first value of an option: neither the user's configuration nor
                               // `options` change these
                               "-o", "StrictHostKeyChecking=yes", "-o", "RemoteCommand=none", "-o",
                               "ClearAllForwardings=yes"};
  if (port) out.insert(out.end(), {"-p", std::to_string(port)});
  if (!identity.empty()) out.insert(out.end(), {"-i", identity, "-o", "IdentitiesOnly=yes"});
  out.insert(out.end(), options.begin(), options.end());
  out.push_back(address);
  return out;
}

Result<std::vector<SshHost>> read_ssh_hosts(const Value& settings) {
  cloud::SettingsReader reader("ssh", settings);
  const Value listed = reader.any("hosts");
  const std::vector<std::string> options = reader.texts("options", {});
  reader.any("traits");
  RILLE_CHECK(reader.done());
  std::vector<SshHost> out;
  const Value::Array* hosts = listed.as_array();
  if (!hosts || hosts->empty())
    return make_error(ErrorKind::config, "the provider ssh has no hosts",
                      "as in {\"ssh\": {\"hosts\": [\"me@gpu1\"]}}");
  for (const Value& v : *hosts) {
    RILLE_TRY(SshHost host, read_host(v));
    const auto same = [&](const SshHost& h) { return h.name == host.name; };
    if (std::any_of(out.begin(), out.end(), same))
      return wrong(host.name, "two hosts have this name", "give one of them a different `name`");
    host.options = options;
    out.push_back(std::move(host));
  }
  return out;
}

}  // namespace rille::provider
