// Matrix products.
#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

namespace {

// Copies a matrix that oneDNN cannot read: one of the last two strides must be 1, and the other at least the row
// length.
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
  // If the right operand is a plain matrix, all rows of the left operand form one product.
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
  // oneDNN takes no stride of 0, so a broadcast batch is copied. This is rare: usually both operands have the batch.
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
  // A vector gets a dimension of 1, which is removed from the result.
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
  return bias && !in ? add(result, bias) : Result<Tensor>(result);  // a product over 0 elements has not added the bias
}

void gradient::matmul(Backward& b) {
  const SameProducts same(b);
  if (b.needs(0)) b.set(0, b(tensor::matmul(b.g(), b(tensor::transpose(b.in(1), -2, -1)))));
  if (b.needs(1)) b.set(1, b(tensor::matmul(b(tensor::transpose(b.in(0), -2, -1)), b.g())));
}

// Inputs of the operation: x [rows, in], the weight viewed as [in, out], and bias [out].
void gradient::linear(Backward& b) {
  const SameProducts same(b);
  if (b.needs(0)) b.set(0, b(tensor::matmul(b.g(), b(tensor::transpose(b.in(1), 0, 1)))));
  // Computed as [out, in], the memory layout of the weight, and viewed transposed, so that the gradient of the weight
  // is contiguous.
  if (b.needs(1)) {
    const Tensor turned = b(tensor::matmul(b(tensor::transpose(b.g(), 0, 1)), b.in(0)));
    b.set(1, b(tensor::transpose(turned, 0, 1)));
  }
  if (b.inputs() == 3 && b.needs(2)) b.set(2, b(tensor::sum(b.g(), {0})));
}

}  // namespace rille::tensor
