// Element-wise operations that pass values to one another become one (kernels/fused.hpp): each value is read once and
// written once, if at all. Results keep their bits; where a group would not fit, its operations stay as they were.
#pragma once

#include "kernels/fused.hpp"
#include "runtime/tensor/passes.hpp"

namespace rille::tensor {

// A group as an operation's payload. `members` say the same in operations, for a device that makes kernels of its own:
// member k reads and writes places of kernels::Fused.
struct FusedGroup final : kernels::Fused {
  struct Member {
    const Op* op = nullptr;
    kernels::Attrs attrs;
    int n_in = 0;
    int in[3] = {}, out = 0;           // places; a piece may hold one value after another
    DType out_dtype = DType::f32;
  };
  std::vector<Member> members;
  std::string text;                    // "mul+add+gelu"
  const char* name() const override { return text.c_str(); }
  bool same(const kernels::Payload& other) const override { return this == &other; }
  void run(const kernels::Call& c) const override { kernels::fused(c); }
  // Whether output `out` may take the memory of input `in`: no step after the one that writes it reads that input.
  bool may_share(int in, int n_in, int out) const;
};

// In program order but for what was joined.
Nodes fuse_elementwise(const Nodes& nodes, const IsTemporary& temporary);

}  // namespace rille::tensor
