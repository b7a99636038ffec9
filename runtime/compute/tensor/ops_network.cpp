#include <cmath>

#include "runtime/compute/tensor/check.hpp"

namespace rille::tensor {

namespace {

// A matrix operand of oneDNN: one of its last two strides is 1, the other at least as long; else it is copied.
Result<Tensor> matrix_operand(const Tensor& t) {
  const int r = t.rank();
  const auto fits = [&](int unit, int row) {
    return (t.strides()[unit] == 1 || t.shape()[unit] == 1) && t.strides()[row] >= t.shape()[unit] &&
           t.strides()[unit] > 0;
  };
  if (t.count() == 0 || fits(r - 1, r - 2) || fits(r - 2, r - 1)) return t;
  return clone(t);
}

Error shapes_differ(const char* op, const Tensor& a, const Tensor& b, std::string why) {
  return bad(fmt::format("{}: {} x {}: {}", op, to_string(a.shape()), to_string(b.shape()), why));
}

Result<Tensor> matmul_matrices(const Tensor& a, const Tensor& b) {
  const int ra = a.rank(), rb = b.rank();
  const auto k = a.shape()[ra - 1];
  if (k != b.shape()[rb - 2]) {
    return shapes_differ("matmul", a, b, fmt::format("inner dimensions {} and {} differ", k, b.shape()[rb - 2]));
  }
  // A plain matrix on the right: all rows of the left one are rows of one product.
  std::int64_t rows = 1;
  for (int i = 0; i < ra - 1; ++i) rows *= a.shape()[i];
  if (rb == 2 && ra > 2 && view_strides(a.shape(), a.strides(), dims_of({rows, k}))) {
    RILLE_TRY(const auto flat, view(a, dims_of({rows, k})));
    RILLE_TRY(const auto product, matmul_matrices(flat, b));
    Dims shape = a.shape();
    shape[ra - 1] = b.shape()[1];
    return view(product, shape);
  }
  Dims la = a.shape(), lb = b.shape();
  la.n -= 2;
  lb.n -= 2;
  auto leading = broadcast("matmul", la, lb);
  if (!leading) return shapes_differ("matmul", a, b, "leading dimensions do not broadcast");
  Dims sa = *leading, sb = *leading, out = *leading;
  if (out.n + 2 > kernels::max_rank) return shapes_differ("matmul", a, b, "too many dimensions");
  sa.push(a.shape()[ra - 2]);
  sa.push(k);
  sb.push(k);
  sb.push(b.shape()[rb - 1]);
  out.push(a.shape()[ra - 2]);
  out.push(b.shape()[rb - 1]);
  RILLE_TRY(const auto wide_a, expand(a, sa));
  RILLE_TRY(const auto wide_b, expand(b, sb));
  // A broadcast batch has a stride of 0, which oneDNN does not take: copied. (Rare: batches meet batches.)
  const auto plain = [](const Tensor& t) -> Result<Tensor> {
    for (int i = 0; i < t.rank() - 2; ++i)
      if (t.strides()[i] == 0 && t.shape()[i] > 1) return clone(t);
    return matrix_operand(t);
  };
  RILLE_TRY(const auto x, plain(wide_a));
  RILLE_TRY(const auto y, plain(wide_b));
  return apply_one(OpId::matmul, product_attrs(a), {x, y}, {a.dtype(), out});
}

}  // namespace

Result<Tensor> autocast(const Tensor& t) {
  if (!t || t.dtype() != DType::f32 || !t.graph().modes().autocast) return t;
  return cast(t, *t.graph().modes().autocast);
}

kernels::Attrs product_attrs(const Tensor& t) {
  kernels::Attrs attrs;
  attrs.i[kernels::tf32_at] = t.dtype() == DType::f32 && t.graph().modes().tf32;
  return attrs;
}

Result<Tensor> matmul(const Tensor& left, const Tensor& right) {
  RILLE_TRY(const Tensor a, autocast(left));
  RILLE_TRY(const Tensor b, autocast(right));
  RILLE_CHECK(need_floats("matmul", a, b));
  RILLE_CHECK(need_same_dtype("matmul", a, b));
  if (a.rank() == 0 || b.rank() == 0) return shapes_differ("matmul", a, b, "both need a dimension");
  if (a.rank() > 1 && b.rank() > 1) return matmul_matrices(a, b);
  // Vectors get a dimension of 1 and lose it again.
  if (a.shape()[a.rank() - 1] != b.shape()[std::max(0, b.rank() - 2)]) {
    return shapes_differ("matmul", a, b,
                         fmt::format("inner dimensions {} and {} differ", a.shape()[a.rank() - 1],
                                     b.shape()[std::max(0, b.rank() - 2)]));
  }
  Tensor x = a, y = b;
  if (a.rank() == 1) { RILLE_TRY(x, unsqueeze(a, 0)); }
  if (b.rank() == 1) { RILLE_TRY(y, unsqueeze(b, 1)); }
  RILLE_TRY(auto product, matmul_matrices(x, y));
  if (a.rank() == 1) { RILLE_TRY(product, squeeze(product, b.rank() == 1 ? 0 : -2)); }
  if (b.rank() == 1) { RILLE_TRY(product, squeeze(product, -1)); }
  return product;
}

Result<Tensor> linear(const Tensor& given, const Tensor& given_weight, const Tensor& given_bias) {
  RILLE_TRY(const Tensor x, autocast(given));
  RILLE_TRY(const Tensor weight, autocast(given_weight));
  RILLE_TRY(const Tensor bias, autocast(given_bias));
  RILLE_CHECK(need_floats("linear", x, weight));
  RILLE_CHECK(need_same_dtype("linear", x, weight));
  if (weight.rank() != 2 || x.rank() < 1) return shapes_differ("linear", x, weight, "the weight is [out, in]");
  const auto in = weight.shape()[1], out = weight.shape()[0];
  if (x.size(-1) != in)
    return shapes_differ("linear", x, weight, fmt::format("inner dimensions {} and {} differ", x.size(-1), in));
  if (bias) {
    RILLE_CHECK(need_same_dtype("linear", weight, bias));
    if (bias.rank() != 1 || bias.size(0) != out)
      return shapes_differ("linear", weight, bias, fmt::format("the bias has {} elements", out));
  }
  std::int64_t n = 1;
  for (int d = 0; d + 1 < x.rank(); ++d) n *= x.shape()[d];
  RILLE_TRY(const auto rows, reshape(x, dims_of({n, in})));
  RILLE_TRY(const auto a, matrix_operand(rows));
  RILLE_TRY(const auto turned, transpose(weight, 0, 1));
  RILLE_TRY(const auto w, matrix_operand(turned));
  Dims shape = x.shape();
  shape[x.rank() - 1] = out;
  std::vector<Tensor> inputs{a, w};
  if (bias && in) {
    RILLE_TRY(const auto b, contiguous(bias));
    inputs.push_back(b);
  }
  RILLE_TRY(const auto y, apply_one(OpId::linear, product_attrs(x), inputs, {x.dtype(), dims_of({rows.size(0), out})}));
  RILLE_TRY(const auto result, view(y, shape));
  return bias && !in ? add(result, bias) : Result<Tensor>(result);  // products of nothing leave the bias out
}

Result<Tensor> scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
                                            double scale) {
  constexpr const char* op = "scaled_dot_product_attention";
  for (const Tensor* t : {&q, &k, &v}) {
    RILLE_CHECK(need_floats(op, q, *t));
    RILLE_CHECK(need_same_dtype(op, q, *t));
  }
  const bool fits = q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q.size(0) == k.size(0) &&
                    q.size(0) == v.size(0) && q.size(1) == k.size(1) && q.size(1) == v.size(1) &&
                    k.size(2) == v.size(2) && q.size(3) == k.size(3);
  if (!fits || q.count() == 0 || v.count() == 0 || (causal && q.size(2) > k.size(2))) {
    return bad(fmt::format("{}: q {}, k {}, v {}: want [b, h, t, d], [b, h, s, d], [b, h, s, e], not empty{}", op,
                           to_string(q.shape()), to_string(k.shape()), to_string(v.shape()),
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
  // Laid out [b, t, h, e], seen as [b, h, t, e].
  Graph& g = q.graph();
  const auto b = q.size(0), h = q.size(1), t = q.size(2), e = v.size(3);
  const Tensor memory = make_tensor(g, q.dtype(), dims_of({b, t, h, e}));
  const Tensor o = make_window(memory, 0, dims_of({b, h, t, e}), dims_of({t * h * e, e, h * e, 1}));
  const Tensor lse = make_tensor(g, stats_type(q.dtype()), dims_of({b, h, t}));
  RILLE_CHECK(record(g, OpId::attention, attrs, {x, y, z}, {o, lse}));
  attach_grad(OpId::attention, attrs, {x, y, z}, {o, lse});
  return o;
}

Result<Tensor> layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  RILLE_CHECK(need_float("layer_norm", x));
  if (x.rank() == 0) return bad("layer_norm: a tensor without dimensions");
  for (const Tensor* t : {&weight, &bias}) {
    if (!*t) continue;
    if (t->dtype() != stats_type(x.dtype())) RILLE_CHECK(need_same_dtype("layer_norm", x, *t));
    if (t->rank() != 1 || t->size(0) != x.size(-1)) {
      return bad(fmt::format("layer_norm: {} with a weight or bias of {}: want [{}]", to_string(x.shape()),
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

namespace {
Result<void> need_ids(const char* op, const char* what, const Tensor& t) {
  RILLE_CHECK(need(op, t));
  if (is_integer(t.dtype())) return success();
  return bad(fmt::format("{}: {} of {}{}: want whole numbers", op, what, name_of(t.dtype()), to_string(t.shape())),
             "cast them: t:to(\"i64\")");
}
}  // namespace

Result<Tensor> embedding(const Tensor& weight, const Tensor& ids) {
  RILLE_CHECK(need_float_beside("embedding", weight, ids));
  RILLE_CHECK(need_ids("embedding", "ids", ids));
  if (weight.rank() != 2 || ids.rank() + 1 > kernels::max_rank) {
    return bad(fmt::format("embedding: a table of {} with ids of {}: want [n, c]", to_string(weight.shape()),
                           to_string(ids.shape())));
  }
  RILLE_TRY(const auto table, contiguous(weight));
  RILLE_TRY(const auto rows, contiguous(ids));
  Dims shape = ids.shape();
  shape.push(weight.size(1));
  return apply_one(OpId::embedding, {}, {table, rows}, {weight.dtype(), shape});
}

Result<Tensor> cross_entropy(const Tensor& logits, const Tensor& labels, std::int64_t ignore_index,
                             double label_smoothing) {
  RILLE_CHECK(need_float_beside("cross_entropy", logits, labels));
  RILLE_CHECK(need_ids("cross_entropy", "labels", labels));
  Dims rows = logits.shape();
  rows.n = std::max(0, rows.n - 1);
  if (logits.rank() == 0 || !(rows == labels.shape()) || logits.size(-1) == 0) {
    return bad(fmt::format("cross_entropy: logits {} with labels {}: want [.., c] with [..]", to_string(logits.shape()),
                           to_string(labels.shape())));
  }
  RILLE_TRY(const auto x, contiguous(logits));
  RILLE_TRY(const auto y, contiguous(labels));
  RILLE_CHECK(need_label_smoothing(label_smoothing));
  kernels::Attrs attrs;
  attrs.i[0] = ignore_index;
  attrs.f[0] = label_smoothing;
  const DType wide = stats_type(x.dtype());
  rows.push(2);  // the parts of its log-sum-exp
  RILLE_TRY(auto out, apply(OpId::cross_entropy, attrs, {x, y}, {{wide, {}}, {wide, rows}}));
  return std::move(out[0]);
}

Result<Tensor> multinomial(const Tensor& probabilities) {
  RILLE_CHECK(need_float("multinomial", probabilities));
  if (probabilities.rank() == 0 || probabilities.size(-1) == 0) {
    return bad(fmt::format("multinomial: {}: want [.., c]", to_string(probabilities.shape())));
  }
  const auto n = probabilities.size(-1);
  RILLE_TRY(const auto rows, reshape(probabilities.detach(), dims_of({probabilities.count() / n, n})));
  RILLE_TRY(const auto whole, contiguous(rows));
  RILLE_TRY(const auto picks, apply_one(OpId::multinomial, {}, {whole}, {DType::i64, dims_of({rows.size(0)})}));
  Dims shape = probabilities.shape();
  --shape.n;
  return view(picks, shape);
}

// Each row so many times.
Result<Tensor> multinomial(const Tensor& probabilities, std::int64_t draws) {
  RILLE_CHECK(need_float("multinomial", probabilities));
  if (draws < 1 || probabilities.rank() == 0 || probabilities.rank() == kernels::max_rank)
    return bad(fmt::format("multinomial: {} draws from {}: want one or more from [.., c]", draws,
                           to_string(probabilities.shape())));
  RILLE_TRY(const auto rows, unsqueeze(probabilities.detach(), -2));
  Dims shape = rows.shape();
  shape[shape.n - 2] = draws;
  RILLE_TRY(const auto repeated, expand(rows, shape));
  return multinomial(repeated);
}

}  // namespace rille::tensor
