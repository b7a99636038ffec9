// JSON that others wrote and in which a key may be anything, such as a vocabulary: keys that begin with '$' are taken
// as they stand, where Value::from_json reads its own escapes ("$$" is "$", {"$num":"nan"} a number).
#pragma once

#include <string_view>

#include "runtime/core/base/value.hpp"

namespace rille {

Result<Value> plain_json(std::string_view text);  // invalid: names the offset; depth limit 128

}  // namespace rille
