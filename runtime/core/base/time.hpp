// Instants, durations and the clock. Use wall time for display, for deadlines that several machines share and for the
// journal; use monotonic time for timeouts. A Clock is passed in, so that tests and the simulated cloud can control
// time.
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

// The clock of this computer; thread-safe, never destroyed.
const Clock& system_clock();

// Converts "90s", "5m", "1.5h", "2d", "250ms" or a bare number of seconds to milliseconds. Error `invalid`: says what
// is accepted.
Result<std::int64_t> parse_duration_ms(std::string_view text);
// 5400000 gives "1h30m"; 850 gives "850ms"; at most two units.
std::string format_duration_ms(std::int64_t ms);
// UTC text such as 2026-11-21T02:03:04Z, without a fraction of a second.
std::string format_utc(std::int64_t wall_us);
// Parses the text of format_utc; also accepts a fraction of a second and +00:00. Error `invalid`: any other text.
Result<std::int64_t> parse_utc(std::string_view text);

}  // namespace rille
