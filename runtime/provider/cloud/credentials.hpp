// Where keys come from: a chain of sources, asked in order until one has some, as each cloud's own tools do. What was
// found is kept until shortly before it expires. Never journaled, never shown.
// Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/loop/loop.hpp"
#include "runtime/net/sign/parts.hpp"

namespace rille::provider::cloud {

struct FoundKeys {
  net::Credentials keys;
  std::string from;                    // for people: "the environment", "~/.aws/credentials [work]"
  std::int64_t expires_wall_us = 0;    // 0: never
};

// Gives nothing when it has none; an error when it should have some and they cannot be had.
using KeySource = std::function<Async<std::optional<FoundKeys>>(CancelToken)>;

class CredentialChain {
 public:
  // `hint`: how to give keys to this provider, when there are none.
  CredentialChain(Loop& loop, std::string provider, std::vector<KeySource> sources, std::string hint);

  Async<FoundKeys> get(CancelToken token);
  void forget();                       // they were refused as expired: ask again

 private:
  Loop& loop_;
  std::string provider_, hint_;
  std::vector<KeySource> sources_;
  std::optional<FoundKeys> found_;
};

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

}  // namespace rille::provider::cloud
