// The identity of the keys and their age, from the cloud's list of the user's keys. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"
#include "runtime/workflow/provider/account.hpp"

namespace rille::provider::cloud {

struct KeyList {
  const char* service;                                           // name for people: "IAM"
  const char* made;                                              // the field with the creation time
  std::function<Result<std::int64_t>(const std::string&)> time;  // in microseconds
  std::function<Async<Value::Array>(CancelToken)> ask;           // rows with an AccessKeyId each
};

// Adds the age of permanent keys to `who`, which has name, account and skew already. A missing right is no failure:
// age_unknown gets the reason.
Async<Identity> with_keys(Identity who, net::CredentialChain& keys, KeyList list, CancelToken token);

}  // namespace rille::provider::cloud
