// Identifies the sources this program was built from. Functions travel to an agent as bytecode, so both ends must share
// a build.
#pragma once

#include <string_view>

namespace rille {

// 16 hexadecimal digits; equal in all programs built from the same sources.
std::string_view build_id();

}  // namespace rille
