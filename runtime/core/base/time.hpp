// Instants, durations and the clock. Wall time is for people, deadlines across machines and the journal; monotonic time
// is for timeouts. A Clock is passed in, so that tests and the simulated cloud can control time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t wall_us() const = 0;  // microseconds since 1970-01-01 UTC
  virtual std::int64_t monotonic_ns() const = 0;
};

// The machine's clock; thread-safe, never destroyed.
const Clock& system_clock();

// "90s", "5m", "1.5h", "2d", "250ms", or a bare number of seconds -> milliseconds. invalid: says what is accepted.
Result<std::int64_t> parse_duration_ms(std::string_view text);
// 5400000 -> "1h30m"; 850 -> "850ms"; at most two units.
std::string format_duration_ms(std::int64_t ms);
// 2026-11-21T02:03:04Z
std::string format_utc(std::int64_t wall_us);
// The inverse; also accepts a fraction of a second and +00:00. invalid: any other text.
Result<std::int64_t> parse_utc(std::string_view text);

}  // namespace rille
