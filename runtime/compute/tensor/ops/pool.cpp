// Max and average pooling of images and sequences.
#include <algorithm>
#include <limits>

#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"
#include "runtime/compute/tensor/ops/geometry.hpp"

namespace rille::tensor {

namespace {

// The number of windows in ceil mode: the last may pass the end if it begins in the image or the left padding.
std::int64_t windows_begun(std::int64_t size, const Pooling& how, int axis) {
  const std::int64_t stride = how.stride[axis], padding = how.padding[axis];
  const std::int64_t reach = (how.window[axis] - 1) * how.dilation[axis] + 1;
  const std::int64_t room = size + 2 * padding - reach + stride - 1;
  if (room < 0) return 0;
  const std::int64_t most = room / stride + 1;
  return (most - 1) * stride >= size + padding ? most - 1 : most;
}

Result<Dims> pooled_shape(const char* op, const Tensor& x, const Pooling& how) {
  RILLE_CHECK(need_float(op, x));
  RILLE_CHECK(need_geometry(op, how.stride, how.padding, how.dilation));
  Dims shape = x.shape();
  bool fits = x.rank() == 4;
  for (int k = 0; fits && k < 2; ++k) {
    fits = how.window[k] >= 1 && how.window[k] < geometry_end && 2 * how.padding[k] <= how.window[k];
    shape[2 + k] = windows(x.size(2 + k), how.window[k], how.stride[k], how.padding[k], how.dilation[k]);
    if (how.ceil) shape[2 + k] = windows_begun(x.size(2 + k), how, k);
    // With a larger dilation a window could span the whole image without touching a pixel.
    fits = fits && shape[2 + k] >= 1 && (how.padding[k] == 0 || how.dilation[k] <= x.size(2 + k));
  }
  if (fits) return shape;
  return bad(
      fmt::format("{}: {} with a window of {}, padding {}, dilation {}: expected [n, c, h, w], padding up to half "
                  "the window, and with padding a dilation up to the image",
                  op, to_string(x.shape()), text_of(how.window), text_of(how.padding), text_of(how.dilation)));
}

kernels::Attrs pool_attrs(const Pooling& how) {
  kernels::Attrs attrs;
  for (int k = 0; k < 2; ++k) {
    attrs.i[k] = how.window[k];
    attrs.i[2 + k] = how.stride[k];
    attrs.i[4 + k] = how.padding[k];
    attrs.i[6 + k] = how.dilation[k];
  }
  return attrs;
}

Result<Tensor> max_pool(const char* op, const Tensor& x, const kernels::Attrs& attrs, const Dims& shape) {
  if (x.size(2) * x.size(3) > std::numeric_limits<std::int32_t>::max())  // the kernel stores pixel indices as i32
    return bad(fmt::format("{}: {}: expected planes of less than 2^31 pixels", op, to_string(x.shape())));
  RILLE_TRY(const auto whole, contiguous(x));
  RILLE_TRY(auto out, apply(OpId::max_pool, attrs, {whole}, {{x.dtype(), shape}, {DType::i32, shape}}));
  return std::move(out[0]);
}

// Views a sequence [n, c, l] as an image [n, c, 1, l].
Result<Tensor> row_of(const char* op, const Tensor& x) {
  RILLE_CHECK(need_float(op, x));
  if (x.rank() == 3) return unsqueeze(x, 2);
  return bad(fmt::format("{}: {}: expected [n, c, l]", op, to_string(x.shape())),
             x.rank() == 2   ? "one sequence: t:unsqueeze(1)"
             : x.rank() == 4 ? "images: the operation in 2d"
                             : "");
}

Pooling in_a_row(Pooling how) {
  how.window[0] = how.stride[0] = how.dilation[0] = 1;
  how.padding[0] = 0;
  return how;
}

Result<Tensor> adaptive_pool(const char* op, const Tensor& x, std::int64_t height, std::int64_t width, bool largest) {
  RILLE_CHECK(need_float(op, x));
  if (x.rank() != 4 || height < 1 || width < 1 || x.count() == 0) {
    return bad(
        fmt::format("{}: {} to {{{}, {}}}: expected [n, c, h, w], not empty", op, to_string(x.shape()), height, width));
  }
  kernels::Attrs attrs;
  attrs.f[1] = 1;
  const Dims shape = dims_of({x.size(0), x.size(1), height, width});
  if (largest) return max_pool(op, x, attrs, shape);
  RILLE_TRY(const auto whole, contiguous(x));
  return apply_one(OpId::avg_pool, attrs, {whole}, {x.dtype(), shape});
}

}  // namespace

Result<Tensor> max_pool2d(const Tensor& x, const Pooling& how) {
  RILLE_TRY(const auto shape, pooled_shape("max_pool2d", x, how));
  return max_pool("max_pool2d", x, pool_attrs(how), shape);
}

Result<Tensor> avg_pool2d(const Tensor& x, const Pooling& how, bool count_include_pad) {
  Pooling plain = how;
  plain.dilation = {1, 1};
  RILLE_TRY(const auto shape, pooled_shape("avg_pool2d", x, plain));
  RILLE_TRY(const auto whole, contiguous(x));
  auto attrs = pool_attrs(plain);
  attrs.f[0] = count_include_pad;
  return apply_one(OpId::avg_pool, attrs, {whole}, {x.dtype(), shape});
}

Result<Tensor> max_pool1d(const Tensor& x, const Pooling& how) {
  RILLE_TRY(const auto row, row_of("max_pool1d", x));
  RILLE_TRY(const auto y, max_pool2d(row, in_a_row(how)));
  return squeeze(y, 2);
}

Result<Tensor> avg_pool1d(const Tensor& x, const Pooling& how, bool count_include_pad) {
  RILLE_TRY(const auto row, row_of("avg_pool1d", x));
  RILLE_TRY(const auto y, avg_pool2d(row, in_a_row(how), count_include_pad));
  return squeeze(y, 2);
}

Result<Tensor> adaptive_avg_pool2d(const Tensor& x, std::int64_t height, std::int64_t width) {
  return adaptive_pool("adaptive_avg_pool2d", x, height, width, false);
}

Result<Tensor> adaptive_max_pool2d(const Tensor& x, std::int64_t height, std::int64_t width) {
  return adaptive_pool("adaptive_max_pool2d", x, height, width, true);
}

Result<Tensor> adaptive_avg_pool1d(const Tensor& x, std::int64_t length) {
  RILLE_TRY(const auto row, row_of("adaptive_avg_pool1d", x));
  RILLE_TRY(const auto y, adaptive_pool("adaptive_avg_pool1d", row, 1, length, false));
  return squeeze(y, 2);
}

Result<Tensor> adaptive_max_pool1d(const Tensor& x, std::int64_t length) {
  RILLE_TRY(const auto row, row_of("adaptive_max_pool1d", x));
  RILLE_TRY(const auto y, adaptive_pool("adaptive_max_pool1d", row, 1, length, true));
  return squeeze(y, 2);
}

void gradient::max_pool(Backward& b) {
  const Tensor g = b(tensor::contiguous(b.g()));
  b.set(0, b(apply_one(OpId::max_pool_grad, b.attrs(), {g, b.out(1)}, b.in_spec(0))));
}

void gradient::avg_pool(Backward& b) {
  b.set(0, b(apply_one(OpId::avg_pool_grad, b.attrs(), {b(tensor::contiguous(b.g()))}, b.in_spec(0))));
}

}  // namespace rille::tensor
