// Arithmetic on shapes: broadcasting, strides, views. Works on plain values, not on tensors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/call.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::tensor {

using kernels::Dims;

std::string to_string(const Dims& dims);
Dims contiguous_strides(const Dims& shape);
bool is_contiguous(const Dims& shape, const Dims& strides);
// Turns a dim in [-rank, rank) into one in [0, rank). Error invalid: out of range; names the operation and the rank.
Result<int> normal_dim(std::string_view op, int dim, int rank);
// The shape to which both broadcast. Error invalid: none; names both shapes.
Result<Dims> broadcast(std::string_view op, const Dims& a, const Dims& b);
// Strides that give memory of (shape, strides) the shape `wanted`; nullopt if only a copy can do it.
std::optional<Dims> view_strides(const Dims& shape, const Dims& strides, const Dims& wanted);
inline Dims dims_of(std::initializer_list<std::int64_t> sizes) {
  Dims d;
  for (const auto s : sizes) d.push(s);
  return d;
}

}  // namespace rille::tensor
