// The folder in which a run began. RunControl::pinned keeps it beside the run's sources: relative paths of the script
// mean that folder wherever the run is resumed.
#pragma once

#include <string_view>

namespace rille::engine {

inline constexpr std::string_view working_folder = ":folder";  // the name under which it is pinned

}  // namespace rille::engine
