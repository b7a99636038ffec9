// An operation as the tensor layer sees it: a row of kernels/operations.hpp with the kernel and the gradient rule.
#pragma once

#include <cstdint>

#include "kernels/call.hpp"
#include "kernels/operations.hpp"

namespace rille::tensor {

using kernels::OpId;

enum class Keep : std::uint8_t { nothing, inputs, outputs, both };

class Backward;  // defined in gradient.hpp
using GradRule = void (*)(Backward&);

struct Op {
  OpId id;
  const char* name;
  kernels::Kernel kernel;  // null: the operation is a view and runs no kernel
  GradRule grad;           // null: the operation has no gradient
  Keep keep;
  bool in_place;  // element-wise, so the output may use the memory of an input
};

const Op& op_of(OpId id);
bool draws(const Op& op);  // whether `op` uses random numbers, so that two equal nodes give different results

}  // namespace rille::tensor
