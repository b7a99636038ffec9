// An object whose keys are set in their order: each member is made where it stays. Value::set moves a member twice, and
// looks where it belongs; what is told of each lease is large, and told thrice.
#pragma once

#include <utility>

#include "runtime/core/base/value.hpp"

namespace rille {

class ObjectValue {
 public:
  // The key is none of those before. Behind them all it takes least.
  template <class T>
  ObjectValue& set(const char* key, T&& value) {
    members_.emplace_hint(members_.end(), key, std::forward<T>(value));
    return *this;
  }
  Value take() && { return Value(std::move(members_)); }

 private:
  Value::Object members_;
};

}  // namespace rille
