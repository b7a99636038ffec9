// Attention: the plain kernel where it is enough, the general one for masks, lengths and shared heads; rotary
// embedding.
#include <cmath>

#include "runtime/compute/tensor/check.hpp"

namespace rille::tensor {

namespace {

constexpr const char* op = "scaled_dot_product_attention";

Result<void> need_attention_shapes(const Tensor& q, const Tensor& k, const Tensor& v, const Attention& how) {
  for (const Tensor* t : {&q, &k, &v}) {
    RILLE_CHECK(need_floats(op, q, *t));
    RILLE_CHECK(need_same_dtype(op, q, *t));
  }
  const bool fits = q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q.size(0) == k.size(0) &&
                    q.size(0) == v.size(0) && k.size(1) == v.size(1) && k.size(1) > 0 && q.size(1) % k.size(1) == 0 &&
                    k.size(2) == v.size(2) && q.size(3) == k.size(3);
  if (fits && q.count() > 0 && v.count() > 0 && !(how.causal && q.size(2) > k.size(2))) return success();
  return bad(fmt::format(
      "{}: q {}, k {}, v {}: want [b, h, t, d], [b, g, s, d], [b, g, s, e], g a divisor of h, not "
      "empty{}",
      op, to_string(q.shape()), to_string(k.shape()), to_string(v.shape()), how.causal ? ", t <= s when causal" : ""));
}

// bool or of q's type, broadcast to [b, h, t, s].
Result<Tensor> fitted_mask(const Tensor& q, const Tensor& k, const Tensor& mask) {
  const Dims wanted = dims_of({q.size(0), q.size(1), q.size(2), k.size(2)});
  const auto shape = broadcast(op, mask.shape(), wanted);
  if ((mask.dtype() != DType::boolean && mask.dtype() != q.dtype()) || !shape || !(*shape == wanted)) {
    return bad(fmt::format("{}: a mask of {}{} for scores of {}{}: want bool or the same type, not larger", op,
                           name_of(mask.dtype()), to_string(mask.shape()), name_of(q.dtype()), to_string(wanted)));
  }
  return expand(mask.detach(), wanted);
}

Result<Tensor> fitted_lengths(const Tensor& q, const Tensor& lengths) {
  if (!is_integer(lengths.dtype()) || lengths.rank() != 1 || lengths.size(0) != q.size(0)) {
    return bad(fmt::format("{}: lengths of {}{} for q {}: want whole numbers [{}]", op, name_of(lengths.dtype()),
                           to_string(lengths.shape()), to_string(q.shape()), q.size(0)));
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
  // Laid out [b, t, h, e], seen as [b, h, t, e].
  Graph& g = q.graph();
  const auto b = q.size(0), h = q.size(1), t = q.size(2), e = v.size(3);
  const Tensor memory = make_tensor(g, q.dtype(), dims_of({b, t, h, e}));
  const Tensor o = make_window(memory, 0, dims_of({b, h, t, e}), dims_of({t * h * e, e, h * e, 1}));
  const Tensor lse = make_tensor(g, stats_type(q.dtype()), dims_of({b, h, t}));
  RILLE_CHECK(record(g, OpId::attention_masked, attrs, inputs, {o, lse}));
  attach_grad(OpId::attention_masked, attrs, inputs, {o, lse});
  return o;
}

Result<Tensor> rope(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved) {
  RILLE_CHECK(need_float("rope", x));
  for (const Tensor* t : {&cos, &sin}) {
    RILLE_CHECK(need_floats("rope", x, *t));
    if (t->dtype() != stats_type(x.dtype())) RILLE_CHECK(need_same_dtype("rope", x, *t));
    if (x.rank() >= 2 && x.size(-1) % 2 == 0 && t->rank() == 2 && t->size(0) == x.size(-2) &&
        t->size(1) * 2 == x.size(-1))
      continue;
    return bad(fmt::format("rope: {} with angles of {}: want [.., t, d] with [t, d/2]", to_string(x.shape()),
                           to_string(t->shape())));
  }
  RILLE_TRY(const auto rows, contiguous(x));
  RILLE_TRY(const auto c, contiguous(cos));
  RILLE_TRY(const auto s, contiguous(sin));
  kernels::Attrs attrs;
  attrs.i[0] = interleaved;
  return apply_one(OpId::rope, attrs, {rows, c, s}, {x.dtype(), x.shape()});
}

Result<Angles> rope_angles(Graph& g, std::int64_t positions, std::int64_t width, double base, DType dtype) {
  if (positions < 1 || width < 2 || width % 2 || !(base > 0))
    return bad(
        fmt::format("rope_angles: {} positions of width {} with base {}: want an even width", positions, width, base));
  RILLE_TRY(const auto place, arange(g, 0, double(positions), 1, DType::f64));
  RILLE_TRY(const auto column, unsqueeze(place, 1));
  RILLE_TRY(const auto pair, arange(g, 0, double(width / 2), 1, DType::f64));
  RILLE_TRY(const auto power, mul(pair, -2.0 / double(width)));
  RILLE_TRY(const auto speed, rpow(power, base));
  RILLE_TRY(const auto angle, mul(column, speed));
  RILLE_TRY(const auto c, cos(angle));
  RILLE_TRY(const auto s, sin(angle));
  RILLE_TRY(const auto cos_table, cast(c, dtype));
  RILLE_TRY(const auto sin_table, cast(s, dtype));
  return Angles{cos_table, sin_table};
}

}  // namespace rille::tensor
