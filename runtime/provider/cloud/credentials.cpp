#include "runtime/provider/cloud/credentials.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rille::provider::cloud {

namespace {
constexpr std::int64_t renew_before_us = 5 * 60 * 1'000'000LL;

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

using Maybe = std::optional<FoundKeys>;

Maybe keys_or_none(net::Credentials keys, std::string from) {
  if (keys.id.empty() || keys.secret.empty()) return {};
  FoundKeys found;
  found.keys = std::move(keys);
  found.from = std::move(from);
  return found;
}

Async<Maybe> read_variables(std::string id, std::string secret, std::string token) {
  net::Credentials keys{environment(id.c_str()), environment(secret.c_str()), environment(token.c_str())};
  co_return keys_or_none(std::move(keys), "the environment");
}

Async<Maybe> read_section(IniKeys where) {
  std::error_code ignored;
  if (!std::filesystem::exists(where.file, ignored)) co_return Maybe();
  RILLE_CO_TRY(Ini ini, read_ini(where.file));
  auto& section = ini[where.section];
  net::Credentials keys{section[where.id], section[where.secret], section[where.token]};
  co_return keys_or_none(std::move(keys), where.file);
}
}  // namespace

CredentialChain::CredentialChain(Loop& loop, std::string provider, std::vector<KeySource> sources, std::string hint)
    : loop_(loop), provider_(std::move(provider)), hint_(std::move(hint)), sources_(std::move(sources)) {}

Async<FoundKeys> CredentialChain::get(CancelToken token) {
  if (found_ && (!found_->expires_wall_us || loop_.clock().wall_us() + renew_before_us < found_->expires_wall_us))
    co_return *found_;
  found_.reset();
  for (const KeySource& source : sources_) {
    RILLE_CO_TRY(std::optional<FoundKeys> keys, co_await source(token));
    if (!keys) continue;
    found_ = std::move(*keys);
    co_return *found_;
  }
  Error none = make_error(ErrorKind::auth, fmt::format("there are no credentials for {}", provider_), hint_);
  none.provider = provider_;
  co_return none;
}

void CredentialChain::forget() { found_.reset(); }

KeySource keys_in_variables(std::string id, std::string secret, std::string token) {
  return [=](CancelToken) { return read_variables(id, secret, token); };
}

KeySource keys_in_ini(IniKeys where) {
  return [where = std::move(where)](CancelToken) { return read_section(where); };
}

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

Result<Ini> read_ini(const std::string& file) {
  std::ifstream lines(file);
  if (!lines) return errno_error("read", file, errno);
  Ini out;
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    const bool indented = !line.empty() && (line[0] == ' ' || line[0] == '\t');
    line = trimmed(line);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[' && line.back() == ']') {
      section = trimmed(line.substr(1, line.size() - 2));
      if (section.starts_with("profile ")) section = trimmed(section.substr(8));  // as ~/.aws/config writes it
      out[section];
    } else if (const std::size_t equals = line.find('='); equals != std::string::npos && !indented) {
      out[section][trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 1));
    }
  }
  return out;
}

}  // namespace rille::provider::cloud
