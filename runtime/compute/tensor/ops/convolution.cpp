// Convolution and its transpose.
#include <algorithm>
#include <limits>

#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"
#include "runtime/compute/tensor/ops/geometry.hpp"

namespace rille::tensor {

namespace {

// Copies a tensor with a stride of 0 (broadcast) or below, because oneDNN takes positive strides only.
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
    return bad(
        fmt::format("conv2d: {} with a weight of {} in {} groups: expected [n, c, h, w] with [o, c/groups, kh, kw]",
                    to_string(x.shape()), to_string(weight.shape()), groups));
  }
  if (bias && (bias.rank() != 1 || bias.size(0) != weight.size(0))) {
    return bad(fmt::format("conv2d: a weight of {} with a bias of {}: expected [{}]", to_string(weight.shape()),
                           to_string(bias.shape()), weight.size(0)));
  }
  Dims shape = dims_of({x.size(0), weight.size(0), 0, 0});
  kernels::Attrs attrs = product_attrs(x);
  for (int k = 0; k < 2; ++k) {
    shape[2 + k] = windows(x.size(2 + k), weight.size(2 + k), how.stride[k], how.padding[k], how.dilation[k]);
    RILLE_CHECK(need_padding("conv2d", how.padding[k], x.size(2 + k), weight.size(2 + k), how.dilation[k]));
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
    return bad(fmt::format("conv1d: {} with a weight of {}: expected [n, c, l] with [o, c/groups, k]",
                           to_string(x.shape()), to_string(weight.shape())));
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
        fmt::format("conv_transpose2d: {} with a weight of {} in {} groups: expected [n, c, h, w] with "
                    "[c, o/groups, kh, kw]",
                    to_string(x.shape()), to_string(weight.shape()), groups));
  }
  const std::int64_t channels = weight.size(1) * groups;
  if (bias && (bias.rank() != 1 || bias.size(0) != channels)) {
    return bad(fmt::format("conv_transpose2d: a weight of {} in {} groups with a bias of {}: expected [{}]",
                           to_string(weight.shape()), groups, to_string(bias.shape()), channels));
  }
  Dims shape = dims_of({x.size(0), channels, 0, 0});
  kernels::Attrs attrs = product_attrs(x);
  for (int k = 0; k < 2; ++k) {
    const auto stride = how.stride[k], padding = how.padding[k], dilation = how.dilation[k];
    RILLE_CHECK(need_padding("conv_transpose2d", padding, x.size(2 + k), weight.size(2 + k), dilation));
    shape[2 + k] = as_size(__int128(x.size(2 + k) - 1) * stride - 2 * padding +
                           __int128(weight.size(2 + k) - 1) * dilation + more[k] + 1);
    if (x.size(2 + k) < 1 || shape[2 + k] < 1 || more[k] < 0 || more[k] >= std::max(stride, dilation)) {
      return bad(fmt::format(
          "conv_transpose2d: {} with a weight of {}, stride {}, padding {}, dilation {}, "
          "output_padding {}: the result would be empty, or output_padding is not below stride and dilation",
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

void gradient::convolution(Backward& b) {
  const Tensor g = b(tensor::contiguous(b.g()));
  if (b.needs(0)) b.set(0, b(apply_one(OpId::convolution_grad_input, b.attrs(), {g, b.in(1)}, b.in_spec(0))));
  const bool bias = b.inputs() == 3;
  if (!b.needs(1) && !(bias && b.needs(2))) return;
  std::vector<Spec> specs{b.in_spec(1)};
  if (bias) specs.push_back(b.in_spec(2));
  const auto out = b(apply(OpId::convolution_grad_weight, b.attrs(), {b.in(0), g}, specs), specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) b.set(1 + i, out[i]);
}

// The convolution is linear in both operands: the gradients of its input gradient are the convolution and the gradient
// of the weight.
void gradient::convolution_grad_input(Backward& b) {
  const Tensor g = b(tensor::contiguous(b.g()));
  if (b.needs(0)) b.set(0, b(apply_one(OpId::convolution, b.attrs(), {g, b.in(1)}, b.in_spec(0))));
  if (b.needs(1)) b.set(1, b(apply_one(OpId::convolution_grad_weight, b.attrs(), {g, b.in(0)}, b.in_spec(1))));
}

}  // namespace rille::tensor
