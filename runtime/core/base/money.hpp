// Money is counted in integer micro-dollars; the ledger never uses floating point. units.hpp converts and formats them.
#pragma once

#include <cstdint>

namespace rille {

using Micros = std::int64_t;  // micro-dollars

}  // namespace rille
