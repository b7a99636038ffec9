// The last instant at which a call that costs money may be sent. The lease's row stores this instant. A create call
// sent later could make a second machine, because by then Rille may have concluded that the first call made none
// (docs/design/leases.md, "An answer that was lost"). Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille {

// Call immediately before sending. Error `timeout` with is_late() true: the instant has passed and nothing was sent;
// resources already made for the machine are kept for the next try. send_by_wall_us 0: no limit.
Result<> check_send_by(std::int64_t send_by_wall_us, std::int64_t now_wall_us);
inline constexpr std::string_view late_code = "too_late";
inline bool is_late(const Error& e) { return e.code == late_code; }

}  // namespace rille
