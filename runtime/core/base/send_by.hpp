// The last instant at which a call that costs money may be sent. A create call leaves by the time in its lease's row or
// not at all: one that leaves later is not covered by the proof that nothing was made, and could be a second machine
// (docs/design/leases.md, "An answer that was lost"). Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille {

// Checked immediately before sending. timeout, is_late: the instant has passed; nothing was sent, and what was made for
// the machine is kept for the next try. send_by_wall_us 0: no limit.
Result<> check_send_by(std::int64_t send_by_wall_us, std::int64_t now_wall_us);
inline constexpr std::string_view late_code = "too_late";
inline bool is_late(const Error& e) { return e.code == late_code; }

}  // namespace rille
