// The files that a kernel's source includes: what is compiled depends on them, too. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "runtime/compute/device/kernel_build.hpp"

namespace rille::device {

// Paths and contents of all files that `text` may include, and those in turn: beside the file that names them, in
// options.folder, and where the options' -I send the compiler. What stands in a branch that is not taken counts, too;
// an include that is a macro does not. "": none, but for the headers that a compiler has of its own.
std::string included_files(std::string_view text, const KernelOptions& options);

}  // namespace rille::device
