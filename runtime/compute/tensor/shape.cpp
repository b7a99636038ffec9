#include "runtime/compute/tensor/shape.hpp"

#include <fmt/format.h>

#include "runtime/compute/tensor/tensor.hpp"

namespace rille::tensor {

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (int i = 0; i < dims.n; ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

Result<Dims> make_dims(const std::vector<std::int64_t>& sizes) {
  if (sizes.size() > std::size_t(kernels::max_rank)) {
    return make_error(ErrorKind::invalid, fmt::format("a tensor of {} dimensions: at most {} are possible",
                                                      sizes.size(), kernels::max_rank));
  }
  Dims dims;
  for (const auto s : sizes) dims.push(s);
  RILLE_CHECK(check_dims(dims));
  return dims;
}

Result<> check_dims(const Dims& dims) {
  double elements = 1;
  for (int i = 0; i < dims.n; ++i) {
    if (dims[i] < 0)
      return make_error(ErrorKind::invalid, fmt::format("a dimension of size {}: expected 0 or more", dims[i]));
    if (dims[i] > 0) elements *= double(dims[i]);  // also in an empty tensor: strides are such products
  }
  if (elements > 1e15) return make_error(ErrorKind::invalid, fmt::format("{} has too many elements", to_string(dims)));
  return success();
}

Dims contiguous_strides(const Dims& shape) {
  Dims strides = shape;
  std::int64_t step = 1;
  for (int i = shape.n - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i] > 0 ? shape[i] : 1;
  }
  return strides;
}

bool is_contiguous(const Dims& shape, const Dims& strides) {
  std::int64_t step = 1;
  for (int i = shape.n - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    if (shape[i] == 0) return true;
    if (strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

Result<int> normal_dim(std::string_view op, int dim, int rank) {
  if (dim < -rank || dim >= rank) {
    return make_error(
        ErrorKind::invalid,  // the message counts dimensions from 1, as scripts do
        fmt::format("{}: there is no dimension {} in a tensor with {} dimensions", op, dim < 0 ? dim : dim + 1, rank));
  }
  return dim < 0 ? dim + rank : dim;
}

Result<Dims> broadcast(std::string_view op, const Dims& a, const Dims& b) {
  Dims out;
  out.n = std::max(a.n, b.n);
  for (int i = 1; i <= out.n; ++i) {
    const std::int64_t x = i <= a.n ? a[a.n - i] : 1, y = i <= b.n ? b[b.n - i] : 1;
    if (x != y && x != 1 && y != 1) {
      return make_error(ErrorKind::invalid,
                        fmt::format("{}: {} and {}: sizes {} and {} at dimension {} from the end do not broadcast", op,
                                    to_string(a), to_string(b), x, y, i));
    }
    out[out.n - i] = x == 1 ? y : x;
  }
  return out;
}

std::optional<Dims> view_strides(const Dims& shape, const Dims& strides, const Dims& wanted) {
  Dims out = wanted;
  if (shape.count() == 0) return contiguous_strides(wanted);
  // Matches groups of dimensions of equal size in both shapes, from the end; inside a group the strides must be
  // contiguous.
  int w = wanted.n - 1;
  std::int64_t base = 1, have = 1, want = 1;
  if (shape.n > 0) base = strides[shape.n - 1];
  for (int i = shape.n - 1; i >= 0; --i) {
    have *= shape[i];
    const bool ends = i == 0 || (shape[i - 1] != 1 && strides[i - 1] != have * base);
    if (!ends) continue;
    while (w >= 0 && (want < have || wanted[w] == 1)) {
      out[w] = want * base;
      want *= wanted[w];
      --w;
    }
    if (want != have) return std::nullopt;
    if (i > 0) {
      base = strides[i - 1];
      have = want = 1;
    }
  }
  for (; w >= 0; --w) out[w] = want * base;  // strides of leading dimensions of size 1
  return out;
}

}  // namespace rille::tensor
