// What a data set's state is: which one it is, and how far it has come. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::data {

// As text: a double has only 53 bits.
Value state_of(Value identity, std::uint64_t cursor);

// The cursor of a state of the same data set. state: another data set's, with the first field that differs.
Result<std::uint64_t> cursor_of(const Value& identity, const Value& state);

}  // namespace rille::data
