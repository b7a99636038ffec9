// Which sources this program was made from. Functions travel to an agent as bytecode: both ends must be of one build.
#pragma once

#include <string_view>

namespace rille {

// 16 hexadecimal digits; the same in all programs that were made from the same sources, whatever links them.
std::string_view build_id();

}  // namespace rille
