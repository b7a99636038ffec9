// The files that a kernel's source includes, on which the compiled result also depends. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "runtime/compute/device/kernel_build.hpp"

namespace rille::device {

// Paths and contents of all files that `text` may include, directly or not: beside the including file, in
// options.folder, and in the options' -I folders. Includes in branches not taken count; an include by a macro does not.
// "": none, apart from the compiler's own headers.
std::string included_files(std::string_view text, const KernelOptions& options);

}  // namespace rille::device
