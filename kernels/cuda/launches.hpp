// All launch functions: (Call, Launcher, names of the kernel for each type). The table of operations says which
// operation has which function.
#pragma once

#include "kernels/cuda/windows.hpp"

namespace rille::kernels::cuda {

#define RILLE_LAUNCH(name, kernel, build, launch, ...) void launch(const Call& c, Launcher& l, const Names& names);
RILLE_OPERATIONS(RILLE_LAUNCH)
#undef RILLE_LAUNCH

// copy.cpp
void copy_view(Launcher& l, const View& in, const View& out);      // copies or casts; any strides and types
void fill_view(Launcher& l, const View& out, double f, std::int64_t i);

}  // namespace rille::kernels::cuda
