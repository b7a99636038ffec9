// Builds an object from keys given in ascending order. Value::set would search for each key's position and move each
// member twice, which is slow for a lease's record: it is large and is written three times.
#pragma once

#include <utility>

#include "runtime/core/base/value.hpp"

namespace rille {

class ObjectValue {
 public:
  // `key` must be greater than all earlier keys, because each member is inserted at the end.
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
