// CredentialChain: a list of sources, asked in order until one has keys, as each cloud's own tools do. The keys are
// cached until shortly before they expire and then fetched again, once for all waiting callers; if that fails, the
// cached keys are used until they expire. Keys are never journaled and never shown.
// Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"
#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

struct FoundKeys {
  Credentials keys;
  std::string from;                  // for people: "the environment", "~/.aws/credentials [work]"
  std::int64_t expires_wall_us = 0;  // 0: never
};

struct KeySource {
  std::string name;  // for the error when no source has keys: "AWS_ACCESS_KEY_ID"
  // Nothing if this source is not configured; an error if it is configured and fails.
  std::function<Async<std::optional<FoundKeys>>(CancelToken)> ask;
};

class CredentialChain {
 public:
  // `hint`: how to give this provider keys, for the error when there are none.
  CredentialChain(Loop& loop, std::string provider, std::vector<KeySource> sources, std::string hint);

  // auth: no source has keys (the message lists the sources in order). Also the error of a source that is configured
  // and fails.
  Async<FoundKeys> get(CancelToken token);
  void forget();  // the service refused the keys as expired: ask again

 private:
  struct Search;
  Async<FoundKeys> search(CancelToken token) const;
  void keep(FoundKeys found);

  Loop& loop_;
  std::string provider_, hint_;
  std::vector<KeySource> sources_;
  std::optional<FoundKeys> found_;
  std::int64_t renew_at_us_ = 0;    // for keys that expire
  std::shared_ptr<Search> search_;  // one at a time; other callers wait for it
};

// A source of empty keys, for unsigned calls.
std::vector<KeySource> no_keys();
KeySource ready_keys(FoundKeys keys);

// Keys in environment variables; `token` names that of a temporary key. Nothing if the id or the secret is missing.
KeySource keys_in_variables(std::string id, std::string secret, std::string token);

// A section of an INI file, and the names of its fields.
struct IniKeys {
  std::string file, section, id, secret, token;
};
KeySource keys_in_ini(IniKeys where);  // nothing if the file or the key is missing. io: the file cannot be read

// An environment variable, or "".
std::string environment(const char* name);

// [section] and key = value, as in ~/.aws/credentials; comments begin with # or ;. io: the file cannot be read.
using Ini = std::map<std::string, std::map<std::string, std::string>>;
Result<Ini> read_ini(const std::string& file);
Ini parse_ini(const std::string& text);

}  // namespace rille::net
