// For `rille schedule add`: with this argument, in a rehearsal, rille.args checks the others, and then ends the run as
// for `--help`.
#pragma once

namespace rille::host {

inline constexpr const char* check_arguments = "?";

}  // namespace rille::host
