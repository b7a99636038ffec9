// The machine code of a cubin as text, by nvdisasm of the CUDA toolkit. Blocks: not on the loop thread. Errors, kind
// device: nvdisasm is not on this machine, or refuses the cubin.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::device {

// `name`: the kernel's, for messages.
Result<std::string> machine_code_text(const std::string& image, const std::string& name);

}  // namespace rille::device
