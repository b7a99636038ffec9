// A group of element-wise operations on CUDA: launches the one kernel that was generated for it (Fused::function) or,
// if there is none, the operations one after another. Plain C++.
#pragma once

#include <algorithm>

#include "kernels/cuda/windows.hpp"
#include "kernels/fused.hpp"

namespace rille::kernels::cuda {

// The elements that a thread takes at once: 16 bytes of the widest operand.
inline int group_pack(const Call& c) {
  std::size_t widest = 1;
  for (int k = 0; k < c.n_in; ++k) widest = std::max(widest, size_bytes(c.in[k].dtype));
  for (int k = 0; k < c.n_out; ++k) widest = std::max(widest, size_bytes(c.out[k].dtype));
  return pack_of(widest);
}

}  // namespace rille::kernels::cuda
