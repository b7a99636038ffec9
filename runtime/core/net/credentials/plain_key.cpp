#include "runtime/core/net/credentials/plain_key.hpp"

#include <filesystem>

#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/net/credentials/bearer.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::net {

namespace {

constexpr std::size_t key_bytes_max = 64 << 10;

using Found = std::optional<FoundKeys>;

std::string unquoted(const std::string& text) {
  constexpr const char* around = " \t\r\n\"'";
  const std::size_t first = text.find_first_not_of(around);
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(around) - first + 1);
}

Found found_key(const std::string& key, std::string from) {
  if (key.empty()) return {};
  FoundKeys out;
  out.keys.token = key;
  out.from = std::move(from);
  return out;
}

Async<Found> read_variable(std::string name) { co_return found_key(unquoted(environment(name.c_str())), name); }

Async<Found> read_key_file(std::string path, std::string section, std::string field) {
  const std::string file = environment("HOME") + "/" + path;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) co_return Found();
  if (field.empty()) {
    RILLE_CO_TRY(const std::string text, store::read_file(file, key_bytes_max));
    co_return found_key(unquoted(text), file);
  }
  RILLE_CO_TRY(Ini ini, read_ini(file));
  co_return found_key(unquoted(ini[section][field]), file);
}

}  // namespace

KeySource key_from_variable(std::string name) {
  return {name, [name](CancelToken) { return read_variable(name); }};
}

KeySource key_from_file(std::string path, std::string section, std::string field) {
  return {"~/" + path, [=](CancelToken) { return read_key_file(path, section, field); }};
}

Parts bear_plain_key(Parts parts, const Credentials& who, std::int64_t) { return bear_token(std::move(parts), who); }

Parts json_request(const std::string& method, const std::string& base, const std::string& path, const Value& body) {
  Parts out;
  out.method = method;
  const std::size_t host = base.find("://");
  const std::size_t begin = host == std::string::npos ? 0 : host + 3, slash = base.find('/', begin);
  if (host != std::string::npos) out.scheme = base.substr(0, host);
  out.host = base.substr(begin, slash == std::string::npos ? slash : slash - begin);
  out.path = (slash == std::string::npos ? "" : base.substr(slash)) + path;
  out.headers = {{"Accept", "application/json"}};
  if (body.is_null()) return out;
  out.headers.emplace_back("Content-Type", "application/json");
  out.body = to_plain_json(body);
  return out;
}

}  // namespace rille::net
