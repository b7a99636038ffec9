// Finds the files that a kernel's source includes: a change to one of them must compile the kernel again. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "runtime/compute/device/kernel_build.hpp"

namespace rille::device {

// Returns the paths and contents of all files that `text` may include, directly or through other files. Searches beside
// the including file, in options.folder, and in the -I folders of options.flags. Includes below #if count even if the
// branch is not compiled; an #include of a macro does not count. "": only the compiler's own headers are included. For
// a confined kernel (`confined`) only files in options.folder count; besides them its compiler can read only the
// system's headers. Error of kind invalid: such a kernel includes more than included_bytes_max.
constexpr std::size_t included_bytes_max = 16 << 20;
Result<std::string> included_files(std::string_view text, const KernelOptions& options);

}  // namespace rille::device
