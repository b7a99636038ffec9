// Finds the age of the access keys in the cloud's list of the user's keys. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"
#include "runtime/workflow/provider/account.hpp"

namespace rille::provider::cloud {

struct KeyList {
  const char* service;                                           // the service's name in messages: "IAM"
  const char* made;                                              // the name of the field with a key's creation time
  std::function<Result<std::int64_t>(const std::string&)> time;  // parses a creation time to microseconds
  std::function<Async<Value::Array>(CancelToken)> ask;  // requests the user's keys; each row has an AccessKeyId
};

// Adds the creation time of permanent keys to `who`, which already has name, account and skew. If the key list may not
// be read, the call succeeds and age_unknown gets the reason.
Async<Identity> with_keys(Identity who, net::CredentialChain& keys, KeyList list, CancelToken token);

}  // namespace rille::provider::cloud
