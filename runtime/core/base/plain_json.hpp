// Parses JSON of other programs, in which a key may be any text, such as a tokenizer's vocabulary. A key that begins
// with '$' is kept as written; Value::from_json would decode it as an escape ("$$" is "$", {"$num":"nan"} a number).
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/base/value.hpp"

namespace rille {

// error `invalid`: names the byte offset; nesting is limited to 128 levels
Result<Value> plain_json(std::string_view text);
// For services of others. Values that JSON lacks (bytes, NaN, maps) are written as to_json writes them.
std::string to_plain_json(const Value& v);

}  // namespace rille
