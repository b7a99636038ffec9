// Writes the JSON text of an object member by member. Used for rows written by the thousand, where building a Value
// would take most of the time. With keys in ascending order the text equals Value::to_json(). Keys must need no JSON
// escapes.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>

#include "runtime/core/base/value.hpp"

namespace rille {

class ObjectText {
 public:
  ObjectText() {
    text_.reserve(480);  // bytes; enough for the row of a request, the longest kind of row
    text_ = '{';
  }

  template <class T>
  ObjectText& set(std::string_view key, const T& value) {
    if (text_.size() > 1) text_ += ',';
    ((text_ += '"') += key) += "\":";
    if constexpr (std::is_same_v<T, ObjectText>) (text_ += value.text_) += '}';
    else if constexpr (std::is_same_v<T, bool>) text_ += value ? "true" : "false";
    else if constexpr (std::is_integral_v<T>) put(std::int64_t{value});
    else if constexpr (std::is_convertible_v<const T&, std::string_view>) put(std::string_view(value));
    else text_ += Value(value).to_json();
    return *this;
  }
  std::string take() && { return std::move(text_ += '}'); }

 private:
  void put(std::int64_t n) {
    // integers from 2^53 on are rounded to a double, as Value does
    constexpr std::int64_t exact = std::int64_t{1} << 53;
    if (n <= -exact || n >= exact) {
      text_ += Value(n).to_json();
      return;
    }
    char digits[24];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
  }
  void put(std::string_view s) {
    for (const char c : s)
      if (c < ' ' || c > '~' || c == '"' || c == '\\') {
        text_ += Value(s).to_json();
        return;
      }
    ((text_ += '"') += s) += '"';
  }

  std::string text_;
};

}  // namespace rille
