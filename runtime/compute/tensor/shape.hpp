// Arithmetic on shapes: broadcasting, strides, views. Values only; no tensors.
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
// dim in [-rank, rank) -> [0, rank). invalid: names the operation and the rank.
Result<int> normal_dim(std::string_view op, int dim, int rank);
// The common shape of both. invalid: names both.
Result<Dims> broadcast(std::string_view op, const Dims& a, const Dims& b);
// Strides under which memory of (shape, strides) reads as `wanted`; nullopt if that takes a copy.
std::optional<Dims> view_strides(const Dims& shape, const Dims& strides, const Dims& wanted);
inline Dims dims_of(std::initializer_list<std::int64_t> sizes) {
  Dims d;
  for (const auto s : sizes) d.push(s);
  return d;
}

}  // namespace rille::tensor
