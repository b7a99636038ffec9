// Element-wise operations that pass values to one another become one (kernels/fused.hpp): each value is read once and
// written once, if at all. Results keep their bits; where a group would not fit, its operations stay as they were.
#pragma once

#include "kernels/kernels.hpp"
#include "runtime/compute/device/group.hpp"
#include "runtime/compute/tensor/passes.hpp"

namespace rille::tensor {

// A group as an operation's payload.
struct FusedGroup final : device::Group {
  std::string text;  // "mul+add+gelu"
  const char* name() const override { return text.c_str(); }
  bool same(const kernels::Payload& other) const override { return this == &other; }
  void run(const kernels::Call& c) const override { kernels::fused(c); }
  // Whether output `out` may take the memory of input `in`: no step after the one that writes it reads that input.
  bool may_share(int in, int n_in, int out) const;
};

// In program order but for what was joined.
Nodes fuse_elementwise(const Nodes& nodes, const IsTemporary& temporary);

}  // namespace rille::tensor
