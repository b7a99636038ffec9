// The saved state of a data set: values that identify the data set, and the position. Any thread.
#pragma once

#include <cstdint>

#include "runtime/compute/data/pace.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/store/hash.hpp"

namespace rille::data {

// Makes a state. The cursor is stored as text: a double has only 53 bits.
Value state_of(Value identity, std::uint64_t cursor);

// Returns the cursor in `state`. Error state: `state` is of another data set; the message names the first field that
// differs from `identity`.
Result<std::uint64_t> cursor_of(const Value& identity, const Value& state);

// Adds data to the hash that identifies the data set: all bytes up to 256 MiB; for larger data, samples from the whole.
void hash_data(store::Hasher& hasher, std::string_view bytes, const Look& look);

}  // namespace rille::data
