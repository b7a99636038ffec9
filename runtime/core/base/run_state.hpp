// What the journal says of a run. Leases know no more of it than this.
#pragma once

#include <string_view>

namespace rille {

// Nothing goes on with it any more. `removed`: a person has removed its record; what it has cost stays.
inline bool run_has_ended(std::string_view state) {
  return state == "done" || state == "failed" || state == "cancelled" || state == "removed";
}

}  // namespace rille
