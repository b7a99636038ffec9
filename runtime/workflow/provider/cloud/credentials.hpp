// Where keys come from: a chain of sources, asked in order until one has some, as each cloud's own tools do. What was
// found is kept until shortly before it expires, then asked for again, once for all that wait; if that fails, what was
// found serves as long as it lasts. Never journaled, never shown.
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

namespace rille::provider::cloud {

struct FoundKeys {
  net::Credentials keys;
  std::string from;                  // for people: "the environment", "~/.aws/credentials [work]"
  std::int64_t expires_wall_us = 0;  // 0: never
};

struct KeySource {
  std::string name;  // for people, when nobody has any: "AWS_ACCESS_KEY_ID"
  // Gives nothing when it has none; an error when it should have some and they cannot be had.
  std::function<Async<std::optional<FoundKeys>>(CancelToken)> ask;
};

class CredentialChain {
 public:
  // `hint`: how to give keys to this provider, when there are none.
  CredentialChain(Loop& loop, std::string provider, std::vector<KeySource> sources, std::string hint);

  // auth: nobody has any, and who was asked, in which order; or what that one says that should have some.
  Async<FoundKeys> get(CancelToken token);
  void forget();  // they were refused as expired: ask again

 private:
  struct Search;
  Async<FoundKeys> search(CancelToken token) const;
  void keep(FoundKeys found);

  Loop& loop_;
  std::string provider_, hint_;
  std::vector<KeySource> sources_;
  std::optional<FoundKeys> found_;
  std::int64_t renew_at_us_ = 0;    // not before; of what expires
  std::shared_ptr<Search> search_;  // one at a time; others wait for it
};

// For calls that nobody signs: a chain of it has empty keys.
std::vector<KeySource> no_keys();
// Keys that are there already.
KeySource ready_keys(FoundKeys keys);

// Keys in three variables of the environment; `token` is that of a temporary key. None, when one of the first two is.
KeySource keys_in_variables(std::string id, std::string secret, std::string token);

// A section of an INI file, and its fields.
struct IniKeys {
  std::string file, section, id, secret, token;
};
KeySource keys_in_ini(IniKeys where);  // no file, or no key in it: none. io: it cannot be read

// A variable of the environment, or "".
std::string environment(const char* name);

// [section] and key = value, as in ~/.aws/credentials; comments begin with # or ;. io: it cannot be read.
using Ini = std::map<std::string, std::map<std::string, std::string>>;
Result<Ini> read_ini(const std::string& file);
Ini parse_ini(const std::string& text);

}  // namespace rille::provider::cloud
