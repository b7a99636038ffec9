// Convolution, pooling, and normalisation over channels.
#include <algorithm>
#include <limits>

#include "runtime/compute/tensor/check.hpp"

namespace rille::tensor {

namespace {

std::string text_of(const Pair2& p) { return fmt::format("{{{}, {}}}", p[0], p[1]); }

// How many windows fit.
std::int64_t windows(std::int64_t size, std::int64_t window, std::int64_t stride, std::int64_t padding,
                     std::int64_t dilation) {
  const std::int64_t room = size + 2 * padding - (window - 1) * dilation - 1;
  return room < 0 ? 0 : room / stride + 1;
}

constexpr std::int64_t geometry_end = std::int64_t(1) << 30;  // kernels have them in 32 bits

Result<void> need_geometry(const char* op, const Pair2& stride, const Pair2& padding, const Pair2& dilation) {
  for (int k = 0; k < 2; ++k) {
    if (stride[k] >= 1 && padding[k] >= 0 && dilation[k] >= 1 &&
        std::max({stride[k], padding[k], dilation[k]}) < geometry_end)
      continue;
    return bad(fmt::format("{}: stride {}, padding {}, dilation {}: want at least 1, 0, 1, and less than 2^30", op,
                           text_of(stride), text_of(padding), text_of(dilation)));
  }
  return success();
}

// oneDNN reads any positive strides; a broadcast one is copied.
Result<Tensor> dense(const Tensor& t) {
  for (int i = 0; i < t.rank(); ++i)
    if (t.shape()[i] > 1 && t.strides()[i] <= 0) return clone(t);
  return t;
}

Result<void> need_operands(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  RILLE_CHECK(need_floats(op, x, weight));
  RILLE_CHECK(need_same_dtype(op, x, weight));
  return bias ? need_same_dtype(op, weight, bias) : success();
}

}  // namespace

Result<Tensor> conv2d(const Tensor& given, const Tensor& given_weight, const Tensor& given_bias,
                      const Convolution& how) {
  RILLE_TRY(const Tensor x, autocast(given));
  RILLE_TRY(const Tensor weight, autocast(given_weight));
  RILLE_TRY(const Tensor bias, autocast(given_bias));
  RILLE_CHECK(need_operands("conv2d", x, weight, bias));
  RILLE_CHECK(need_geometry("conv2d", how.stride, how.padding, how.dilation));
  const auto groups = how.groups;
  const bool fits = x.rank() == 4 && weight.rank() == 4 && groups >= 1 && x.size(1) == weight.size(1) * groups &&
                    weight.size(0) % groups == 0 && weight.count() > 0;
  if (!fits) {
    return bad(fmt::format("conv2d: {} with a weight of {} in {} groups: want [n, c, h, w] with [o, c/groups, kh, kw]",
                           to_string(x.shape()), to_string(weight.shape()), groups));
  }
  if (bias && (bias.rank() != 1 || bias.size(0) != weight.size(0))) {
    return bad(fmt::format("conv2d: a weight of {} with a bias of {}: want [{}]", to_string(weight.shape()),
                           to_string(bias.shape()), weight.size(0)));
  }
  Dims shape = dims_of({x.size(0), weight.size(0), 0, 0});
  kernels::Attrs attrs = product_attrs(x);
  for (int k = 0; k < 2; ++k) {
    shape[2 + k] = windows(x.size(2 + k), weight.size(2 + k), how.stride[k], how.padding[k], how.dilation[k]);
    if (shape[2 + k] < 1) {
      return bad(fmt::format("conv2d: {} with a weight of {}, padding {}, dilation {}: the window does not fit",
                             to_string(x.shape()), to_string(weight.shape()), text_of(how.padding),
                             text_of(how.dilation)));
    }
    attrs.i[k] = how.stride[k];
    attrs.i[2 + k] = how.padding[k];
    attrs.i[4 + k] = how.dilation[k];
  }
  attrs.i[6] = groups;
  RILLE_TRY(const auto a, dense(x));
  RILLE_TRY(const auto w, dense(weight));
  std::vector<Tensor> inputs{a, w};
  if (bias) {
    RILLE_TRY(const auto b, contiguous(bias));
    inputs.push_back(b);
  }
  return apply_one(OpId::convolution, attrs, inputs, {x.dtype(), shape});
}

Result<Tensor> conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Convolution& how) {
  RILLE_CHECK(need_operands("conv1d", x, weight, bias));
  if (x.rank() != 3 || weight.rank() != 3) {
    return bad(fmt::format("conv1d: {} with a weight of {}: want [n, c, l] with [o, c/groups, k]", to_string(x.shape()),
                           to_string(weight.shape())));
  }
  RILLE_TRY(const auto flat, unsqueeze(x, 2));
  RILLE_TRY(const auto row, unsqueeze(weight, 2));
  Convolution wide{{1, how.stride[1]}, {0, how.padding[1]}, {1, how.dilation[1]}, how.groups};
  RILLE_TRY(const auto y, conv2d(flat, row, bias, wide));
  return squeeze(y, 2);
}

Result<Tensor> conv_transpose2d(const Tensor& given, const Tensor& given_weight, const Tensor& given_bias,
                                const Convolution& how, const Pair2& more) {
  RILLE_TRY(const Tensor x, autocast(given));
  RILLE_TRY(const Tensor weight, autocast(given_weight));
  RILLE_TRY(const Tensor bias, autocast(given_bias));
  RILLE_CHECK(need_operands("conv_transpose2d", x, weight, bias));
  RILLE_CHECK(need_geometry("conv_transpose2d", how.stride, how.padding, how.dilation));
  const auto groups = how.groups;
  const bool fits = x.rank() == 4 && weight.rank() == 4 && groups >= 1 && x.size(1) == weight.size(0) &&
                    weight.size(0) % groups == 0 && weight.count() > 0;
  if (!fits) {
    return bad(
        fmt::format("conv_transpose2d: {} with a weight of {} in {} groups: want [n, c, h, w] with "
                    "[c, o/groups, kh, kw]",
                    to_string(x.shape()), to_string(weight.shape()), groups));
  }
  const std::int64_t channels = weight.size(1) * groups;
  if (bias && (bias.rank() != 1 || bias.size(0) != channels)) {
    return bad(fmt::format("conv_transpose2d: a weight of {} in {} groups with a bias of {}: want [{}]",
                           to_string(weight.shape()), groups, to_string(bias.shape()), channels));
  }
  Dims shape = dims_of({x.size(0), channels, 0, 0});
  kernels::Attrs attrs = product_attrs(x);
  for (int k = 0; k < 2; ++k) {
    const auto stride = how.stride[k], padding = how.padding[k], dilation = how.dilation[k];
    shape[2 + k] = (x.size(2 + k) - 1) * stride - 2 * padding + dilation * (weight.size(2 + k) - 1) + more[k] + 1;
    if (x.size(2 + k) < 1 || shape[2 + k] < 1 || more[k] < 0 || more[k] >= std::max(stride, dilation)) {
      return bad(
          fmt::format("conv_transpose2d: {} with a weight of {}, stride {}, padding {}, dilation {}, "
                      "output_padding {}: nothing is left, or it is not less than the stride or the dilation",
                      to_string(x.shape()), to_string(weight.shape()), text_of(how.stride), text_of(how.padding),
                      text_of(how.dilation), text_of(more)));
    }
    attrs.i[k] = stride;
    attrs.i[2 + k] = padding;
    attrs.i[4 + k] = dilation;
  }
  attrs.i[6] = groups;
  RILLE_TRY(const auto a, contiguous(x));
  RILLE_TRY(const auto w, dense(weight));
  RILLE_TRY(const auto y, apply_one(OpId::convolution_grad_input, attrs, {a, w}, {x.dtype(), shape}));
  if (!bias) return y;
  RILLE_TRY(const auto over, view(bias, dims_of({1, channels, 1, 1})));
  return add(y, over);
}

namespace {

// Also the last, which reaches past the end, where it begins before that: on a place or in the padding before it.
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
    // Else a window could reach over the whole image, and hold nothing of it.
    fits = fits && shape[2 + k] >= 1 && (how.padding[k] == 0 || how.dilation[k] <= x.size(2 + k));
  }
  if (fits) return shape;
  return bad(
      fmt::format("{}: {} with a window of {}, padding {}, dilation {}: want [n, c, h, w], padding up to half "
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

}  // namespace

namespace {

Result<Tensor> max_pool(const char* op, const Tensor& x, const kernels::Attrs& attrs, const Dims& shape) {
  if (x.size(2) * x.size(3) > std::numeric_limits<std::int32_t>::max())  // places in a plane are kept as i32
    return bad(fmt::format("{}: {}: want planes of less than 2^31 pixels", op, to_string(x.shape())));
  RILLE_TRY(const auto whole, contiguous(x));
  RILLE_TRY(auto out, apply(OpId::max_pool, attrs, {whole}, {{x.dtype(), shape}, {DType::i32, shape}}));
  return std::move(out[0]);
}

// A sequence is an image of one row.
Result<Tensor> row_of(const char* op, const Tensor& x) {
  RILLE_CHECK(need_float(op, x));
  if (x.rank() == 3) return unsqueeze(x, 2);
  return bad(fmt::format("{}: {}: want [n, c, l]", op, to_string(x.shape())),
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
        fmt::format("{}: {} to {{{}, {}}}: want [n, c, h, w], not empty", op, to_string(x.shape()), height, width));
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

namespace {

// A vector for the channels: [c], of x's type or the one in which its statistics are kept.
Result<void> need_channels(const char* op, const Tensor& x, const char* what, const Tensor& t) {
  if (!t) return success();
  if (t.dtype() != stats_type(x.dtype())) RILLE_CHECK(need_same_dtype(op, x, t));
  if (t.rank() == 1 && t.size(0) == x.size(1)) return success();
  return bad(
      fmt::format("{}: {} with {} of {}: want [{}]", op, to_string(x.shape()), what, to_string(t.shape()), x.size(1)));
}

// [c] as [1, c, 1, ..], to broadcast against x.
Result<Tensor> over_channels(const Tensor& x, const Tensor& t) {
  Dims shape;
  for (int i = 0; i < x.rank(); ++i) shape.push(i == 1 ? t.size(0) : 1);
  return view(t, shape);
}

// x weight + bias, computed in the statistics' type and rounded once: a large mean leaves nothing of a half's digits.
Result<Tensor> scale_channels(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!weight && !bias) return x;
  const DType wide = stats_type(x.dtype());
  RILLE_TRY(Tensor y, cast(x, wide));
  if (weight) {
    RILLE_TRY(const auto same, cast(weight, wide));
    RILLE_TRY(const auto w, over_channels(x, same));
    RILLE_TRY(y, mul(y, w));
  }
  if (bias) {
    RILLE_TRY(const auto same, cast(bias, wide));
    RILLE_TRY(const auto b, over_channels(x, same));
    RILLE_TRY(y, add(y, b));
  }
  return cast(y, x.dtype());
}

// y = x scale + shift with scale = weight / sqrt(variance + eps), shift = bias - mean scale.
Result<Tensor> with_running(const Tensor& x, const BatchNorm& b) {
  const auto wide = [&](const Tensor& t) { return cast(t, stats_type(x.dtype())); };
  RILLE_TRY(const auto variance, wide(b.running_var.detach()));
  RILLE_TRY(const auto mean, wide(b.running_mean.detach()));
  RILLE_TRY(const auto safe, add(variance, b.eps));
  RILLE_TRY(auto scale, rsqrt(safe));
  if (b.weight) {
    RILLE_TRY(const auto weight, wide(b.weight));
    RILLE_TRY(scale, mul(scale, weight));
  }
  RILLE_TRY(const auto moved, mul(scale, mean));
  RILLE_TRY(auto shift, neg(moved));
  if (b.bias) {
    RILLE_TRY(const auto bias, wide(b.bias));
    RILLE_TRY(shift, add(shift, bias));
  }
  return scale_channels(x, scale, shift);
}

// running = (1 - momentum) running + momentum now
Result<void> update_running(const BatchNorm& b, const Tensor& mean, const Tensor& variance, double count) {
  NoGrad guard(mean.graph());
  if (Tensor t = b.running_mean) {
    RILLE_CHECK(mul_(t, 1 - b.momentum));
    RILLE_CHECK(add_(t, mean, b.momentum));
  }
  if (Tensor t = b.running_var) {
    RILLE_CHECK(mul_(t, 1 - b.momentum));
    RILLE_CHECK(add_(t, variance, b.momentum * count / (count - 1)));
  }
  return success();
}

}  // namespace

Result<Tensor> batch_norm(const Tensor& x, const BatchNorm& b) {
  RILLE_CHECK(need_float("batch_norm", x));
  if (x.rank() < 2) return bad(fmt::format("batch_norm: {}: want [n, c, ..]", to_string(x.shape())));
  RILLE_CHECK(need_channels("batch_norm", x, "a weight", b.weight));
  RILLE_CHECK(need_channels("batch_norm", x, "a bias", b.bias));
  RILLE_CHECK(need_channels("batch_norm", x, "a running mean", b.running_mean));
  RILLE_CHECK(need_channels("batch_norm", x, "a running variance", b.running_var));
  if (!b.training) {
    if (b.running_mean && b.running_var) return with_running(x, b);
    return bad(fmt::format("batch_norm: {} without training needs running statistics", to_string(x.shape())));
  }
  const auto channels = x.size(1), n = x.size(0), count = channels ? x.count() / channels : 0;
  if (count < 2) {
    return bad(fmt::format("batch_norm: {} has {} values for each channel: a variance needs two", to_string(x.shape()),
                           count));
  }
  RILLE_TRY(const auto planes, reshape(x, dims_of({n, channels, count / n})));
  RILLE_TRY(const auto whole, contiguous(planes));
  Tensor w = b.weight, shift = b.bias;
  if (w) { RILLE_TRY(w, contiguous(w)); }
  if (shift) { RILLE_TRY(shift, contiguous(shift)); }
  kernels::Attrs attrs;
  attrs.f[0] = b.eps;
  const Spec stats{stats_type(x.dtype()), dims_of({channels})};
  RILLE_TRY(const auto out,
            apply(OpId::batch_norm, attrs, {whole, w, shift}, {{x.dtype(), whole.shape()}, stats, stats}));
  RILLE_CHECK(update_running(b, out[1].detach(), out[2].detach(), double(count)));
  return view(out[0], x.shape());
}

Result<Tensor> group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  RILLE_CHECK(need_float("group_norm", x));
  if (x.rank() < 2 || groups < 1 || x.size(1) % groups || x.count() == 0) {
    return bad(fmt::format("group_norm: {} in {} groups: want [n, c, ..], c a multiple, not empty",
                           to_string(x.shape()), groups));
  }
  RILLE_CHECK(need_channels("group_norm", x, "a weight", weight));
  RILLE_CHECK(need_channels("group_norm", x, "a bias", bias));
  RILLE_TRY(const auto rows, reshape(x, dims_of({x.size(0) * groups, x.count() / (x.size(0) * groups)})));
  RILLE_TRY(const auto even, layer_norm(rows, {}, {}, eps));
  RILLE_TRY(const auto back, view(even, x.shape()));
  return scale_channels(back, weight, bias);
}

Result<Tensor> rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  RILLE_CHECK(need_float("rms_norm", x));
  if (x.rank() == 0) return bad("rms_norm: a tensor without dimensions");
  if (weight) {
    if (weight.dtype() != stats_type(x.dtype())) RILLE_CHECK(need_same_dtype("rms_norm", x, weight));
    if (weight.rank() != 1 || weight.size(0) != x.size(-1)) {
      return bad(fmt::format("rms_norm: {} with a weight of {}: want [{}]", to_string(x.shape()),
                             to_string(weight.shape()), x.size(-1)));
    }
  }
  RILLE_TRY(const auto rows, contiguous(x));
  Tensor w = weight;
  if (w) { RILLE_TRY(w, contiguous(weight)); }
  kernels::Attrs attrs;
  attrs.f[0] = eps;
  Dims stats = x.shape();
  --stats.n;
  RILLE_TRY(auto out,
            apply(OpId::rms_norm, attrs, {rows, w}, {{x.dtype(), x.shape()}, {stats_type(x.dtype()), stats}}));
  return std::move(out[0]);
}

}  // namespace rille::tensor
