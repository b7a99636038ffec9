// Builds an object from keys given in ascending order, without moving members. Value::set moves each member twice and
// searches for its position; the record of a lease is large and is written three times.
#pragma once

#include <utility>

#include "runtime/core/base/value.hpp"

namespace rille {

class ObjectValue {
 public:
  // `key` must be greater than all earlier keys: insertion at the end is the cheapest.
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
