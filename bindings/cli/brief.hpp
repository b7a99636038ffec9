// A value in a few lines, for people: `rille show`.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/base/value.hpp"

namespace rille::cli {

// The value as JSON; of a long one the first members of each list and object, and how many there are. `whole` is the
// command that prints all of it.
std::string brief(const Value& value, std::string_view whole);

}  // namespace rille::cli
