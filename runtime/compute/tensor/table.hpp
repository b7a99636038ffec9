// An operation as the tensor layer sees it: a row of kernels/operations.hpp with its kernel and gradient rule.
#pragma once

#include <cstdint>

#include "kernels/call.hpp"
#include "kernels/operations.hpp"

namespace rille::tensor {

using kernels::OpId;

enum class Keep : std::uint8_t { nothing, inputs, outputs, both };

class Backward;  // gradient.hpp
using GradRule = void (*)(Backward&);

struct Op {
  OpId id;
  const char* name;
  kernels::Kernel kernel;  // null: a view
  GradRule grad;           // null: no gradient
  Keep keep;
  bool in_place;  // element-wise: the output may use an input's memory
};

const Op& op_of(OpId id);
bool draws(const Op& op);  // uses random numbers: two equal nodes give different results

}  // namespace rille::tensor
