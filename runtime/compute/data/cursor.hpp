// The state of a data set: its identity and its position. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::data {

// The cursor is stored as text: a double has only 53 bits.
Value state_of(Value identity, std::uint64_t cursor);

// The cursor from a state of the same data set. state: of another data set; names the first field that differs.
Result<std::uint64_t> cursor_of(const Value& identity, const Value& state);

}  // namespace rille::data
