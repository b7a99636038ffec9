// The states of a run in the journal. Leases use only this.
#pragma once

#include <string_view>

namespace rille {

// The run never continues. `removed`: its record was deleted by a user; its costs are kept.
inline bool run_has_ended(std::string_view state) {
  return state == "done" || state == "failed" || state == "cancelled" || state == "removed";
}

}  // namespace rille
