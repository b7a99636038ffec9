// Joins element-wise operations that pass values to one another into one call (kernels/fused.hpp), so that each value
// is read once and written at most once. Results are bit-equal. Operations whose group would exceed a limit stay
// separate.
#pragma once

#include "kernels/kernels.hpp"
#include "runtime/compute/device/group.hpp"
#include "runtime/compute/tensor/passes.hpp"

namespace rille::tensor {

// A group of joined operations, as the payload of one operation.
struct FusedGroup final : device::Group {
  std::string text;  // names of the operations, "mul+add+gelu"
  const char* name() const override { return text.c_str(); }
  bool same(const kernels::Payload& other) const override { return this == &other; }
  void run(const kernels::Call& c) const override { kernels::fused(c); }
  // Whether output `out` may use the memory of input `in`: no step after the step that writes `out` reads `in`.
  bool may_share(int in, int n_in, int out) const;
};

// Returns the nodes in program order, with each group as one node.
Nodes fuse_elementwise(const Nodes& nodes, const IsTemporary& temporary);

}  // namespace rille::tensor
