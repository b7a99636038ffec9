// Normalisation of rows (layer_norm, rms_norm) and of channels (batch_norm, group_norm).
#include <cmath>
#include <limits>

#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

Result<Tensor> layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  RILLE_CHECK(need_float("layer_norm", x));
  if (x.rank() == 0) return bad("layer_norm: a tensor without dimensions");
  for (const Tensor* t : {&weight, &bias}) {
    if (!*t) continue;
    if (t->dtype() != stats_type(x.dtype())) RILLE_CHECK(need_same_dtype("layer_norm", x, *t));
    if (t->rank() != 1 || t->size(0) != x.size(-1)) {
      return bad(fmt::format("layer_norm: {} with a weight or bias of {}: expected [{}]", to_string(x.shape()),
                             to_string(t->shape()), x.size(-1)));
    }
  }
  RILLE_TRY(const auto rows, contiguous(x));
  Tensor w = weight, b = bias;
  if (w) { RILLE_TRY(w, contiguous(weight)); }
  if (b) { RILLE_TRY(b, contiguous(bias)); }
  kernels::Attrs attrs;
  attrs.f[0] = eps;
  Dims stats = x.shape();
  --stats.n;
  RILLE_TRY(auto out, apply(OpId::layer_norm, attrs, {rows, w, b},
                            {{x.dtype(), x.shape()}, {stats_type(x.dtype()), stats}, {stats_type(x.dtype()), stats}}));
  return std::move(out[0]);
}

void gradient::layer_norm(Backward& b) {
  const Tensor g = b(tensor::contiguous(b.g()));
  const Spec& x = b.in_spec(0);
  const auto row = [&](std::size_t i) {
    return Spec{b.in(i) ? b.in_spec(i).dtype : x.dtype, dims_of({x.shape[x.shape.n - 1]})};
  };
  const auto out =
      b(apply(OpId::layer_norm_grad, {}, {g, b.in(0), b.in(1), b.out(1), b.out(2)}, {x, row(1), row(2)}), 3);
  for (std::size_t i = 0; i < 3; ++i)
    if (b.needs(i)) b.set(i, out[i]);
}

Result<Tensor> rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  RILLE_CHECK(need_float("rms_norm", x));
  if (x.rank() == 0) return bad("rms_norm: a tensor without dimensions");
  if (weight) {
    if (weight.dtype() != stats_type(x.dtype())) RILLE_CHECK(need_same_dtype("rms_norm", x, weight));
    if (weight.rank() != 1 || weight.size(0) != x.size(-1)) {
      return bad(fmt::format("rms_norm: {} with a weight of {}: expected [{}]", to_string(x.shape()),
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

void gradient::rms_norm(Backward& b) {
  const Tensor g = b(tensor::contiguous(b.g()));
  const Spec& x = b.in_spec(0);
  const Spec w = b.in(1) ? b.in_spec(1) : Spec{stats_type(x.dtype), dims_of({x.shape[x.shape.n - 1]})};
  const auto out = b(apply(OpId::rms_norm_grad, b.attrs(), {g, b.in(0), b.in(1), b.out(1)}, {x, w}), 2);
  for (std::size_t i = 0; i < 2; ++i)
    if (b.needs(i)) b.set(i, out[i]);
}

namespace {

// Requires one number per channel, [c], in x's type or the type of x's statistics.
Result<void> need_channels(const char* op, const Tensor& x, const char* what, const Tensor& t) {
  if (!t) return success();
  if (t.dtype() != stats_type(x.dtype())) RILLE_CHECK(need_same_dtype(op, x, t));
  if (t.rank() == 1 && t.size(0) == x.size(1)) return success();
  return bad(fmt::format("{}: {} with {} of {}: expected [{}]", op, to_string(x.shape()), what, to_string(t.shape()),
                         x.size(1)));
}

// Views [c] as [1, c, 1, ..], so that it broadcasts against x.
Result<Tensor> over_channels(const Tensor& x, const Tensor& t) {
  Dims shape;
  for (int i = 0; i < x.rank(); ++i) shape.push(i == 1 ? t.size(0) : 1);
  return view(t, shape);
}

// x * weight + bias in the statistics' type, rounded once: in a half type a large mean would use up all digits.
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

// y = x * scale + shift, where scale = weight / sqrt(variance + eps) and shift = bias - mean * scale.
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

// Sets each running statistic to (1 - momentum) * itself + momentum * the batch's statistic.
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
  if (x.rank() < 2) return bad(fmt::format("batch_norm: {}: expected [n, c, ..]", to_string(x.shape())));
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
    return bad(fmt::format("group_norm: {} in {} groups: expected [n, c, ..], c a multiple, not empty",
                           to_string(x.shape()), groups));
  }
  RILLE_CHECK(need_channels("group_norm", x, "a weight", weight));
  RILLE_CHECK(need_channels("group_norm", x, "a bias", bias));
  RILLE_TRY(const auto rows, reshape(x, dims_of({x.size(0) * groups, x.count() / (x.size(0) * groups)})));
  RILLE_TRY(const auto even, layer_norm(rows, {}, {}, eps));
  RILLE_TRY(const auto back, view(even, x.shape()));
  return scale_channels(back, weight, bias);
}

void gradient::batch_norm(Backward& b) {
  const Tensor g = b(tensor::contiguous(b.g()));
  const Spec &x = b.in_spec(0), &stats = b.fn().out_specs[1];
  const Spec w = b.in(1) ? b.in_spec(1) : stats, shift = b.in(2) ? b.in_spec(2) : stats;
  const auto out =
      b(apply(OpId::batch_norm_grad, b.attrs(), {g, b.in(0), b.in(1), b.out(1), b.out(2)}, {x, w, shift}), 3);
  for (std::size_t i = 0; i < 3; ++i)
    if (b.needs(i)) b.set(i, out[i]);
}

}  // namespace rille::tensor
