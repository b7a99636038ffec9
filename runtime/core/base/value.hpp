// Value: the data that scripts, the journal, agents and the C API exchange. Null, boolean, number, string (any bytes),
// array, or object with string keys in sorted order. Numbers are doubles as in Lua; integers up to 2^53 are exact.
// The canonical text is JSON with sorted keys and shortest exact doubles, so equal values have equal text and one
// SHA-256. Three things JSON lacks are written as one-key objects: {"$num":"nan"|"inf"|"-inf"},
// {"$bytes":"<base64>"} for strings that are not UTF-8, and {"$map":[[key,value],...]} for objects whose keys are
// numbers or booleans. A real key that begins with '$' gets one more '$'.
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
  using Pairs = std::vector<std::pair<Value, Value>>;  // keys: number, boolean or string; sorted when written
  struct Map {
    Pairs pairs;
  };

  Value() = default;
  Value(std::nullptr_t) {}                                   // NOLINT: implicit by design, as in a literal
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

  // The member of an object, or a null Value.
  const Value& operator[](std::string_view key) const;
  // Sets a member. A value that is not an object becomes one.
  Value& set(std::string key, Value value);
  // Readers with a default, for members that are missing or of another type.
  std::string text(std::string_view key, std::string_view otherwise = {}) const;
  double number(std::string_view key, double otherwise = 0) const;
  std::int64_t integer(std::string_view key, std::int64_t otherwise = 0) const;
  bool boolean(std::string_view key, bool otherwise = false) const;

  std::string to_json() const;                            // canonical
  std::string to_json_pretty() const;                     // for people; same escapes
  static Result<Value> from_json(std::string_view text);  // invalid: names the offset; depth limit 128

  friend bool operator==(const Value& a, const Value& b) { return a.to_json() == b.to_json(); }

 private:
  std::variant<std::monostate, bool, double, std::string, Array, Object, Map> data_;
};

// Errors are stored in the journal and cross edges as objects; empty fields are left out.
Value error_to_value(const Error& error);
Error error_from_value(const Value& value);

}  // namespace rille
