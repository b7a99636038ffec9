// Attention: the plain kernel if it suffices; the general kernel for masks, lengths and shared key heads.
#include <cmath>

#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

namespace {

constexpr const char* attention_name = "scaled_dot_product_attention";

Result<void> need_attention_shapes(const Tensor& q, const Tensor& k, const Tensor& v, const Attention& how) {
  for (const Tensor* t : {&q, &k, &v}) {
    RILLE_CHECK(need_floats(attention_name, q, *t));
    RILLE_CHECK(need_same_dtype(attention_name, q, *t));
  }
  const bool fits = q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q.size(0) == k.size(0) &&
                    q.size(0) == v.size(0) && k.size(1) == v.size(1) && k.size(1) > 0 && q.size(1) % k.size(1) == 0 &&
                    k.size(2) == v.size(2) && q.size(3) == k.size(3);
  if (fits && q.count() > 0 && v.count() > 0 && !(how.causal && q.size(2) > k.size(2))) return success();
  return bad(
      fmt::format("{}: q {}, k {}, v {}: expected [b, h, t, d], [b, g, s, d], [b, g, s, e], g a divisor of h, not "
                  "empty{}",
                  attention_name, to_string(q.shape()), to_string(k.shape()), to_string(v.shape()),
                  how.causal ? ", t <= s when causal" : ""));
}

// Returns the mask, which must be bool or of q's type, broadcast to [b, h, t, s].
Result<Tensor> fitted_mask(const Tensor& q, const Tensor& k, const Tensor& mask) {
  const Dims wanted = dims_of({q.size(0), q.size(1), q.size(2), k.size(2)});
  const auto shape = broadcast(attention_name, mask.shape(), wanted);
  if ((mask.dtype() != DType::boolean && mask.dtype() != q.dtype()) || !shape || !(*shape == wanted)) {
    return bad(fmt::format("{}: a mask of {}{} for scores of {}{}: expected bool or the same type, not larger",
                           attention_name, name_of(mask.dtype()), to_string(mask.shape()), name_of(q.dtype()),
                           to_string(wanted)));
  }
  return expand(mask.detach(), wanted);
}

Result<Tensor> fitted_lengths(const Tensor& q, const Tensor& lengths) {
  if (!is_integer(lengths.dtype()) || lengths.rank() != 1 || lengths.size(0) != q.size(0)) {
    return bad(fmt::format("{}: lengths of {}{} for q {}: expected whole numbers [{}]", attention_name,
                           name_of(lengths.dtype()), to_string(lengths.shape()), to_string(q.shape()), q.size(0)));
  }
  RILLE_TRY(const auto wide, cast(lengths, DType::i64));
  return contiguous(wide);
}

}  // namespace

Result<Tensor> scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Attention& how) {
  RILLE_CHECK(need_attention_shapes(q, k, v, how));
  if (!how.mask && !how.lengths && q.size(1) == k.size(1))
    return scaled_dot_product_attention(q, k, v, how.causal, how.scale);
  const auto rows = [](const Tensor& t) {
    return t.strides()[3] == 1 && t.strides()[2] >= t.shape()[3] ? Result<Tensor>(t) : clone(t);
  };
  RILLE_TRY(const auto x, rows(q));
  RILLE_TRY(const auto y, rows(k));
  RILLE_TRY(const auto z, rows(v));
  Tensor mask, lengths;
  if (how.mask) { RILLE_TRY(mask, fitted_mask(q, k, how.mask)); }
  if (how.lengths) { RILLE_TRY(lengths, fitted_lengths(q, how.lengths)); }
  const std::vector<Tensor> inputs{x, y, z, mask, lengths};
  kernels::Attrs attrs;
  attrs.f[0] = how.scale != 0 ? how.scale : 1.0 / std::sqrt(double(q.size(3)));
  attrs.i[0] = how.causal;
  // The result lies in memory as [b, t, h, e] and is viewed as [b, h, t, e].
  Graph& g = q.graph();
  const auto b = q.size(0), h = q.size(1), t = q.size(2), e = v.size(3);
  const Tensor memory = make_tensor(g, q.dtype(), dims_of({b, t, h, e}));
  const Tensor o = make_window(memory, 0, dims_of({b, h, t, e}), dims_of({t * h * e, e, h * e, 1}));
  const Tensor lse = make_tensor(g, stats_type(q.dtype()), dims_of({b, h, t}));
  RILLE_CHECK(record(g, OpId::attention_masked, attrs, inputs, {o, lse}));
  attach_grad(OpId::attention_masked, attrs, inputs, {o, lse});
  return o;
}

Result<Tensor> scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
                                            double scale) {
  for (const Tensor* t : {&q, &k, &v}) {
    RILLE_CHECK(need_floats(attention_name, q, *t));
    RILLE_CHECK(need_same_dtype(attention_name, q, *t));
  }
  const bool fits = q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q.size(0) == k.size(0) &&
                    q.size(0) == v.size(0) && q.size(1) == k.size(1) && q.size(1) == v.size(1) &&
                    k.size(2) == v.size(2) && q.size(3) == k.size(3);
  if (!fits || q.count() == 0 || v.count() == 0 || (causal && q.size(2) > k.size(2))) {
    return bad(fmt::format("{}: q {}, k {}, v {}: expected [b, h, t, d], [b, h, s, d], [b, h, s, e], not empty{}",
                           attention_name, to_string(q.shape()), to_string(k.shape()), to_string(v.shape()),
                           causal ? ", t <= s when causal" : ""));
  }
  const auto rows = [](const Tensor& t) {
    return t.strides()[3] == 1 && t.strides()[2] >= t.shape()[3] ? Result<Tensor>(t) : clone(t);
  };
  RILLE_TRY(const auto x, rows(q));
  RILLE_TRY(const auto y, rows(k));
  RILLE_TRY(const auto z, rows(v));
  kernels::Attrs attrs;
  attrs.f[0] = scale != 0 ? scale : 1.0 / std::sqrt(double(q.size(3)));
  attrs.i[0] = causal;
  // The result lies in memory as [b, t, h, e] and is viewed as [b, h, t, e].
  Graph& g = q.graph();
  const auto b = q.size(0), h = q.size(1), t = q.size(2), e = v.size(3);
  const Tensor memory = make_tensor(g, q.dtype(), dims_of({b, t, h, e}));
  const Tensor o = make_window(memory, 0, dims_of({b, h, t, e}), dims_of({t * h * e, e, h * e, 1}));
  const Tensor lse = make_tensor(g, stats_type(q.dtype()), dims_of({b, h, t}));
  RILLE_CHECK(record(g, OpId::attention, attrs, {x, y, z}, {o, lse}));
  attach_grad(OpId::attention, attrs, {x, y, z}, {o, lse});
  return o;
}

namespace {

// The gradient of the result with rows that matrix products accept; a broadcast gradient is copied.
Tensor rows_of(Backward& b) {
  const Tensor& g = b.g();
  return g.strides()[3] == 1 && g.strides()[2] >= g.shape()[3] ? g : b(tensor::clone(g));
}

}  // namespace

// The gradients of q, k and v share one buffer of [b, t, 3, h, d] if the shapes allow it. If q, k and v are chunks of
// one fused projection, their gradients are then adjacent in memory, and chunk's gradient rule joins them without a
// copy.
void gradient::attention(Backward& b) {
  const Tensor g = rows_of(b);
  if (b.error()) return;
  Graph& graph = g.graph();
  const Dims &q = b.in_spec(0).shape, &k = b.in_spec(1).shape, &v = b.in_spec(2).shape;
  std::vector<Tensor> out;
  if (q == k && k == v) {
    const auto n = q[0], h = q[1], t = q[2], d = q[3];
    const Tensor memory = make_tensor(graph, g.dtype(), dims_of({n, t, 3, h, d}));
    for (int i = 0; i < 3; ++i)
      out.push_back(make_window(memory, i * h * d, q, dims_of({t * 3 * h * d, d, 3 * h * d, 1})));
  } else {
    for (const Dims* s : {&q, &k, &v}) out.push_back(make_tensor(graph, g.dtype(), *s));
  }
  if (auto r = record(graph, OpId::attention_grad, b.attrs(), {g, b.in(0), b.in(1), b.in(2), b.out(0), b.out(1)}, out);
      !r) {
    b.error() = std::move(r).error();
    return;
  }
  for (int i = 0; i < 3; ++i) b.set(i, out[i]);
}

void gradient::attention_masked(Backward& b) {
  const Tensor g = rows_of(b);
  const auto out = b(apply(OpId::attention_masked_grad, b.attrs(),
                           {g, b.in(0), b.in(1), b.in(2), b.in(3), b.in(4), b.out(0), b.out(1)},
                           {b.in_spec(0), b.in_spec(1), b.in_spec(2)}),
                     3);
  for (std::size_t i = 0; i < 3; ++i) b.set(i, out[i]);
}

}  // namespace rille::tensor
