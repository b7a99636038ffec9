// Whose keys are used, and how old they are by the list of a user's keys that its cloud gives. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"
#include "runtime/workflow/provider/account.hpp"

namespace rille::provider::cloud {

struct KeyList {
  const char* service;                                           // that is asked, for people: "IAM"
  const char* made;                                              // the field with the time
  std::function<Result<std::int64_t>(const std::string&)> time;  // in microseconds
  std::function<Async<Value::Array>(CancelToken)> ask;           // rows with an AccessKeyId each
};

// Asks for the age of keys that last; a policy that does not let their owner ask is no failure: it is told why the age
// is not known. `who` has name, account and skew already.
Async<Identity> with_keys(Identity who, net::CredentialChain& keys, KeyList list, CancelToken token);

}  // namespace rille::provider::cloud
