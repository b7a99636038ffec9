// Parses foreign JSON in which a key may be any text, such as a vocabulary. Keys that begin with '$' are kept as
// written, where Value::from_json treats them as escapes ("$$" is "$", {"$num":"nan"} a number).
#pragma once

#include <string_view>

#include "runtime/core/base/value.hpp"

namespace rille {

Result<Value> plain_json(std::string_view text);  // invalid: names the offset; depth limit 128

}  // namespace rille
