#include "runtime/core/net/credentials/chain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "runtime/core/base/text.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::net {

namespace {
// Keys are renewed five minutes before they expire, but not in the first three quarters of their lifetime. After a
// failed renewal the next attempt is made 30 seconds later.
constexpr std::int64_t renew_before_us = 5 * 60 * 1'000'000LL, try_again_us = 30 * 1'000'000LL;
constexpr std::size_t ini_bytes_max = 4 << 20;

using Maybe = std::optional<FoundKeys>;

Maybe keys_or_none(Credentials keys, std::string from) {
  if (keys.id.empty() || keys.secret.empty()) return {};
  FoundKeys found;
  found.keys = std::move(keys);
  found.from = std::move(from);
  return found;
}

Async<Maybe> given(FoundKeys keys) { co_return keys; }

Async<Maybe> read_variables(std::string id, std::string secret, std::string token) {
  Credentials keys{environment(id.c_str()), environment(secret.c_str()), environment(token.c_str())};
  co_return keys_or_none(std::move(keys), "the environment");
}

Async<Maybe> read_section(IniKeys where) {
  std::error_code ignored;
  if (!std::filesystem::exists(where.file, ignored)) co_return Maybe();
  RILLE_CO_TRY(Ini ini, read_ini(where.file));
  auto& section = ini[where.section];
  Credentials keys{section[where.id], section[where.secret], section[where.token]};
  co_return keys_or_none(std::move(keys), where.file);
}
}  // namespace

struct CredentialChain::Search {
  using Answer = std::optional<Result<FoundKeys>>;  // empty: the caller that searched was cancelled or destroyed
  bool busy = false;
  std::vector<Future<Answer>> waiting;

  void tell(const Answer& answer) {
    for (const Future<Answer>& one : std::exchange(waiting, {})) one.set(answer);
  }
};

CredentialChain::CredentialChain(Loop& loop, std::string provider, std::vector<KeySource> sources, std::string hint)
    : loop_(loop), provider_(std::move(provider)), hint_(std::move(hint)), sources_(std::move(sources)),
      search_(std::make_shared<Search>()) {}

Async<FoundKeys> CredentialChain::get(CancelToken token) {
  while (true) {
    if (found_ && (!found_->expires_wall_us || loop_.clock().wall_us() < renew_at_us_)) co_return *found_;
    if (!search_->busy) break;
    const Future<Search::Answer> others(loop_);
    search_->waiting.push_back(others);
    const auto stop = token.on_cancel([others](const Error& why) { others.set(Search::Answer(why)); });
    Search::Answer told = co_await others;
    if (told) co_return std::move(*told);
  }
  struct Turn {
    std::shared_ptr<Search> search;
    ~Turn() {  // also runs if this coroutine is destroyed while suspended
      search->busy = false;
      search->tell({});
    }
  } turn{search_};
  search_->busy = true;
  Result<FoundKeys> got = co_await search(token);
  const std::int64_t now_us = loop_.clock().wall_us();
  if (got) {
    keep(*got);
  } else if (found_ && !token.cancelled() && now_us < found_->expires_wall_us) {
    renew_at_us_ = std::min(now_us + try_again_us, found_->expires_wall_us);
    got = *found_;
  }
  if (got || !token.cancelled()) search_->tell(Search::Answer(got));
  co_return got;
}

Async<FoundKeys> CredentialChain::search(CancelToken token) const {
  std::string asked;
  for (const KeySource& source : sources_) {
    Result<std::optional<FoundKeys>> keys = co_await source.ask(token);
    if (!keys) {
      Error failed = std::move(keys).error();
      if (!token.cancelled() && !asked.empty()) failed.message += fmt::format(" (nothing in {})", asked);
      if (failed.provider.empty()) failed.provider = provider_;
      co_return failed;
    }
    if (*keys) co_return std::move(**keys);
    if (!asked.ends_with(source.name))
      // two sources may read different fields of one file: name the file once
      (asked += asked.empty() ? "" : ", ") += source.name;
  }
  Error none = make_error(
      ErrorKind::auth, fmt::format("there are no credentials for {}: none were found in {}", provider_, asked), hint_);
  none.provider = provider_;
  co_return none;
}

void CredentialChain::keep(FoundKeys found) {
  const std::int64_t left_us = found.expires_wall_us - loop_.clock().wall_us();
  renew_at_us_ = found.expires_wall_us - std::min(renew_before_us, left_us / 4);
  found_ = std::move(found);
}

void CredentialChain::forget() { found_.reset(); }

std::vector<KeySource> no_keys() { return {ready_keys(FoundKeys())}; }

KeySource ready_keys(FoundKeys keys) {
  return {keys.from, [keys](CancelToken) { return given(keys); }};
}

KeySource keys_in_variables(std::string id, std::string secret, std::string token) {
  return {id + " and " + secret, [=](CancelToken) { return read_variables(id, secret, token); }};
}

KeySource keys_in_ini(IniKeys where) {
  return {fmt::format("[{}] of {}", where.section, where.file), [where](CancelToken) { return read_section(where); }};
}

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

Result<Ini> read_ini(const std::string& file) {
  RILLE_TRY(const std::string text, store::read_file(file, ini_bytes_max));
  return parse_ini(text);
}

Ini parse_ini(const std::string& text) {
  std::istringstream lines(text);
  Ini out;
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    const bool indented = !line.empty() && (line[0] == ' ' || line[0] == '\t');
    line = trimmed(line);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[' && line.back() == ']') {
      section = trimmed(line.substr(1, line.size() - 2));
      if (section.starts_with("profile ")) {  // ~/.aws/config has [profile NAME], with quotes if the name has a space
        section = trimmed(section.substr(8));
        const char quote = section.size() > 1 ? section.front() : '\0';
        if ((quote == '"' || quote == '\'') && section.back() == quote) section = section.substr(1, section.size() - 2);
      }
      out[section];
    } else if (const std::size_t equals = line.find('='); equals != std::string::npos && !indented) {
      std::string key = trimmed(line.substr(0, equals));
      for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      out[section][std::move(key)] = trimmed(line.substr(equals + 1));
    }
  }
  return out;
}

}  // namespace rille::net
