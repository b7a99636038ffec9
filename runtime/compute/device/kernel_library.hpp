// Loads a compiled kernel into this process. Blocks while it reads the file. Any thread.
#pragma once

#include <string>

#include "kernels/shim/abi.h"
#include "runtime/core/base/result.hpp"

namespace rille::device {

struct LoadedLibrary {
  void* handle = nullptr;  // for dlclose()
  const rille_abi::Kernel* kernel = nullptr;
};

// `name`: the kernel's name, for errors. Errors: invalid, code "kernel_compile": a declared name is not defined;
// device: the system does not load the file; integrity: the file is not a kernel's library; invalid: too many
// parameters.
Result<LoadedLibrary> load_library(const std::string& path, const std::string& name);

}  // namespace rille::device
