// Resizing of images. The source pixels of each result are known when the operation is recorded, so they are selected
// by index, one axis after the other.
#include <cmath>

#include "runtime/compute/tensor/check.hpp"

namespace rille::tensor {

namespace {

constexpr std::int64_t pixels_max = 1 << 20;  // per axis: the source pixels are listed for each output pixel

// Per output position of an axis: the pixel at or before its centre, the next pixel, and the weight of that next pixel.
struct Taps {
  std::vector<std::int64_t> first, second;
  std::vector<double> share;
};

Taps taps_of(const Interpolation& how, int axis, std::int64_t size) {
  const std::int64_t out = how.size[axis];
  Taps taps;
  for (std::int64_t i = 0; i < out; ++i) {
    double at;
    if (!how.linear) {
      at = how.step[axis] > 0 ? std::floor(double(i) * how.step[axis]) : double(i * size / out);
    } else if (how.align_corners) {
      at = out > 1 ? double(i) * double(size - 1) / double(out - 1) : 0;
    } else {
      const double step = how.step[axis] > 0 ? how.step[axis] : double(size) / double(out);
      at = std::max(0.0, (double(i) + 0.5) * step - 0.5);
    }
    const std::int64_t pixel = std::min(std::int64_t(at), size - 1);
    taps.first.push_back(pixel);
    taps.second.push_back(std::min(pixel + 1, size - 1));
    taps.share.push_back(at - double(pixel));
  }
  return taps;
}

Result<Tensor> pixels(const Tensor& x, int dim, const std::vector<std::int64_t>& numbers) {
  RILLE_TRY(const auto ids, from_bytes(x.graph(), dims_of({std::int64_t(numbers.size())}), DType::i64, numbers.data(),
                                       numbers.size() * sizeof(std::int64_t)));
  return index_select(x, dim, ids);
}

// Resamples x along dimension `dim`.
Result<Tensor> resized_along(const Tensor& x, int dim, const Taps& taps, bool linear) {
  RILLE_TRY(const auto before, pixels(x, dim, taps.first));
  if (!linear) return before;
  RILLE_TRY(const auto after, pixels(x, dim, taps.second));
  const std::int64_t n = std::int64_t(taps.share.size());
  const Dims shape = dim == 2 ? dims_of({n, 1}) : dims_of({n});
  RILLE_TRY(const auto share, from_numbers(x.graph(), shape, x.dtype(), taps.share));
  RILLE_TRY(const auto apart, sub(after, before));
  RILLE_TRY(const auto part, mul(apart, share));
  return add(before, part);
}

}  // namespace

Result<Tensor> interpolate(const Tensor& given, const Interpolation& how) {
  RILLE_CHECK(need_float("interpolate", given));
  if (given.rank() != 4 || given.size(2) < 1 || given.size(3) < 1 || how.size[0] < 1 || how.size[1] < 1 ||
      std::max(how.size[0], how.size[1]) > pixels_max) {
    return bad(fmt::format("interpolate: {} to {{{}, {}}}: expected [n, c, h, w] with pixels, and sizes from 1 to {}",
                           to_string(given.shape()), how.size[0], how.size[1], pixels_max));
  }
  // A half type may not represent interpolated values, so they are computed in f32.
  RILLE_TRY(Tensor x, how.linear ? cast(given, stats_type(given.dtype())) : Result<Tensor>(given));
  for (int axis = 0; axis < 2; ++axis) {
    if (how.size[axis] == x.size(2 + axis) && how.step[axis] == 0) continue;
    RILLE_TRY(x, resized_along(x, 2 + axis, taps_of(how, axis, x.size(2 + axis)), how.linear));
  }
  return cast(x, given.dtype());
}

}  // namespace rille::tensor
