// How old a key is, by the list of a user's keys that its cloud gives. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/value.hpp"
#include "runtime/provider/account.hpp"

namespace rille::provider::cloud {

struct KeyList {
  const char* service;         // that was asked, for people: "IAM"
  const char* made;            // the field with the time
  std::function<Result<std::int64_t>(const std::string&)> time;  // in microseconds
};

// Fills in when the key of that id was made, or why that is not known: a policy that does not let its owner ask is no
// failure. `rows`: the list with an AccessKeyId each, or how asking for it failed.
Identity with_key_age(Identity who, const std::string& key_id, const Result<Value::Array>& rows, const KeyList& how);

}  // namespace rille::provider::cloud
