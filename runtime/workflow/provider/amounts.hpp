// The amounts in a provider's answer (what a machine has and costs) as numbers in range, because a cloud, a cluster or
// a host may answer anything. Larger values become the limit; negative values and values that are not numbers become 0.
// Pure; any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/core/base/money.hpp"

namespace rille::provider::amounts {

inline constexpr double count_max = 1 << 20, gpus_max = 1 << 16, bytes_max = 0x1p60, amount_max = 1e9, gbps_max = 1e6;
inline constexpr double kib = 0x1p10, mib = 0x1p20, gib = 0x1p30;

inline double bounded(double number, double most) { return number > 0 ? std::min(number, most) : 0; }
inline int count(double number, double most = count_max) { return static_cast<int>(bounded(number, most)); }
// `number` of units of `unit` bytes each.
inline std::int64_t bytes(double number, double unit = 1) {
  return static_cast<std::int64_t>(bounded(number * unit, bytes_max));
}
// A price in micros; -1 (price_unknown) for 0 and for an invalid price.
inline Micros price(double amount) {
  return amount > 0 && amount <= amount_max ? static_cast<Micros>(std::llround(amount * 1e6)) : -1;
}
// Seconds since 1970, up to the year 2255, in microseconds.
inline std::int64_t wall_us(double seconds) { return std::llround(bounded(seconds, 9e9) * 1e6); }

}  // namespace rille::provider::amounts
