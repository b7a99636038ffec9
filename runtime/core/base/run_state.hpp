// Tells from a run's state in the journal whether the run has ended. Lease code needs no more than this about runs.
#pragma once

#include <string_view>

namespace rille {

// Whether a run in this state never continues. `removed`: a user deleted the run's record; its costs are kept.
inline bool run_has_ended(std::string_view state) {
  return state == "done" || state == "failed" || state == "cancelled" || state == "removed";
}

}  // namespace rille
