// Value: the data that scripts, the journal, agents and the C API exchange. A Value is null, a boolean, a number, a
// string of any bytes, an array, or an object with string keys in sorted order. Numbers are doubles as in Lua; integers
// up to 2^53 are exact. The canonical text is JSON with sorted keys and shortest exact doubles, so equal Values have
// equal text and an equal SHA-256. Three things that JSON lacks are written as one-key objects:
// {"$num":"nan"|"inf"|"-inf"}, {"$bytes":"<base64>"} for strings that are not UTF-8, and {"$map":[[key,value],...]} for
// objects whose keys are numbers or booleans. A real key that begins with '$' is written with one more '$'.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille {

class Value {
 public:
  using Array = std::vector<Value>;
  using Object = std::map<std::string, Value, std::less<>>;
  // each key is a number, boolean or string; to_json sorts the pairs
  using Pairs = std::vector<std::pair<Value, Value>>;
  struct Map {
    Pairs pairs;
  };

  Value() = default;
  Value(std::nullptr_t) {}                                   // NOLINT: implicit, so that literals convert
  Value(bool b) : data_(b) {}                                // NOLINT
  Value(double n) : data_(n) {}                              // NOLINT
  Value(int n) : data_(static_cast<double>(n)) {}            // NOLINT
  Value(std::int64_t n) : data_(static_cast<double>(n)) {}   // NOLINT
  Value(std::uint64_t n) : data_(static_cast<double>(n)) {}  // NOLINT
  Value(std::string s) : data_(std::move(s)) {}              // NOLINT
  Value(std::string_view s) : data_(std::string(s)) {}       // NOLINT
  Value(const char* s) : data_(std::string(s)) {}            // NOLINT
  Value(Array a) : data_(std::move(a)) {}                    // NOLINT
  Value(Object o) : data_(std::move(o)) {}                   // NOLINT
  Value(Map m) : data_(std::move(m)) {}                      // NOLINT

  bool is_null() const { return data_.index() == 0; }
  const bool* as_bool() const { return std::get_if<bool>(&data_); }
  const double* as_number() const { return std::get_if<double>(&data_); }
  const std::string* as_string() const { return std::get_if<std::string>(&data_); }
  const Array* as_array() const { return std::get_if<Array>(&data_); }
  const Object* as_object() const { return std::get_if<Object>(&data_); }
  const Map* as_map() const { return std::get_if<Map>(&data_); }
  Array* as_array() { return std::get_if<Array>(&data_); }
  Object* as_object() { return std::get_if<Object>(&data_); }

  // The member `key` of an object; a null Value if there is none.
  const Value& operator[](std::string_view key) const;
  // Sets the member `key`. A Value that is not an object is first replaced by an empty object.
  Value& set(std::string key, Value value);
  // The member `key` converted to a C++ type; `otherwise` if the member is missing or has another type.
  std::string text(std::string_view key, std::string_view otherwise = {}) const;
  double number(std::string_view key, double otherwise = 0) const;
  std::int64_t integer(std::string_view key, std::int64_t otherwise = 0) const;
  bool boolean(std::string_view key, bool otherwise = false) const;

  std::string to_json() const;                                             // the canonical JSON text
  std::optional<std::string> to_json_within(std::size_t bytes_max) const;  // the same; nullopt if it is longer
  std::string to_json_pretty() const;  // indented JSON, with the same escapes as to_json
  // error `invalid`: names the byte offset; nesting is limited to 128 levels
  static Result<Value> from_json(std::string_view text);

  friend bool operator==(const Value& a, const Value& b) { return a.to_json() == b.to_json(); }

 private:
  std::variant<std::monostate, bool, double, std::string, Array, Object, Map> data_;
};

// The journal stores errors, and interfaces pass them, as objects; empty fields are left out.
Value error_to_value(const Error& error);
Error error_from_value(const Value& value);

}  // namespace rille
