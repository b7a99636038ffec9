// The states of a run in the journal, for code that manages leases and does not link the engine.
#pragma once

#include <string_view>

namespace rille {

// Whether a run in this state never continues. `removed`: a user deleted the run's record; its costs are kept.
inline bool run_has_ended(std::string_view state) {
  return state == "done" || state == "failed" || state == "cancelled" || state == "removed";
}

}  // namespace rille
