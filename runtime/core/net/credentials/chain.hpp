// CredentialChain: a list of sources, asked in order until one has keys, as each cloud's tools do. The keys are cached.
// Shortly before they expire they are fetched again, once for all waiting callers; if that fails, the cached keys are
// used until they expire. Keys are never journaled and never shown. Loop thread only.
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
  std::string from;                  // where the keys were found, for messages: "the environment"
  std::int64_t expires_wall_us = 0;  // 0: the keys never expire
};

struct KeySource {
  std::string name;  // names the source in the error when no source has keys
  // Returns empty if this source is not configured; an error if the source is configured and fails.
  std::function<Async<std::optional<FoundKeys>>(CancelToken)> ask;
};

class CredentialChain {
 public:
  // `hint`: how the user can give this provider keys, for the error when there are none.
  CredentialChain(Loop& loop, std::string provider, std::vector<KeySource> sources, std::string hint);

  // Error `auth`: no source has keys (the message lists the sources in order). If a configured source fails, that
  // source's error is returned.
  Async<FoundKeys> get(CancelToken token);
  void forget();  // drops the cached keys, for a service that refused them as expired

 private:
  struct Search;
  Async<FoundKeys> search(CancelToken token) const;
  void keep(FoundKeys found);

  Loop& loop_;
  std::string provider_, hint_;
  std::vector<KeySource> sources_;
  std::optional<FoundKeys> found_;
  std::int64_t renew_at_us_ = 0;    // when to fetch the keys again; meaningless for keys that never expire
  std::shared_ptr<Search> search_;  // the search for keys; only one runs, and other callers wait for its result
};

// One source with empty keys, for unsigned calls.
std::vector<KeySource> no_keys();
KeySource ready_keys(FoundKeys keys);

// Keys in environment variables; `token` names the variable with the session token of temporary keys. No keys if the id
// or the secret is missing.
KeySource keys_in_variables(std::string id, std::string secret, std::string token);

// A section of an INI file, and the names of the fields with the keys.
struct IniKeys {
  std::string file, section, id, secret, token;
};
KeySource keys_in_ini(IniKeys where);  // no keys if the file or a field is missing; error `io`: the file cannot be read

// The value of an environment variable; "" if it is not set.
std::string environment(const char* name);

// Reads [section] and key = value, as in ~/.aws/credentials; comments begin with # or ;. Error `io`: the file cannot be
// read.
using Ini = std::map<std::string, std::map<std::string, std::string>>;
Result<Ini> read_ini(const std::string& file);
Ini parse_ini(const std::string& text);

}  // namespace rille::net
