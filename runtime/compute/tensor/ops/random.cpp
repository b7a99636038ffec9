// Random numbers: random tensors, multinomial draws, dropout.
#include <cmath>
#include <limits>

#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"
#include "runtime/compute/tensor/ops/make.hpp"

namespace rille::tensor {

Result<Tensor> rand(Graph& g, const Dims& shape, DType dtype) {
  RILLE_CHECK(need_float_type("rand", dtype));
  kernels::Attrs attrs;
  attrs.f[1] = 1;
  return make(g, OpId::uniform, attrs, shape, dtype);
}

Result<Tensor> randn(Graph& g, const Dims& shape, DType dtype) {
  RILLE_CHECK(need_float_type("randn", dtype));
  return make(g, OpId::normal, {}, shape, dtype);
}

Result<Tensor> randint(Graph& g, std::int64_t low, std::int64_t high, const Dims& shape, DType dtype) {
  if (low >= high)
    return bad(fmt::format("randint: no whole number lies in [{}, {}): the lower bound must be below the upper one",
                           low, high));
  if (is_half(dtype) || dtype == DType::boolean)
    return bad(fmt::format("randint: the type {} is not possible here: choose a number type", name_of(dtype)));
  kernels::Attrs attrs;
  attrs.i[0] = low;
  attrs.i[1] = high;
  return make(g, OpId::integers, attrs, shape, dtype);
}

// Sorts random f64 numbers and returns their order; two of them are almost never equal.
Result<Tensor> randperm(Graph& g, std::int64_t n) {
  if (n < 0) return bad(fmt::format("randperm: {} numbers: expected 0 or more", n));
  RILLE_TRY(const auto draws, rand(g, dims_of({n}), DType::f64));
  RILLE_TRY(Sorted sorted, sort(draws, 0));
  return std::move(sorted.places);
}

Result<Tensor> dropout(const Tensor& a, double p, bool training) {
  RILLE_CHECK(need_float("dropout", a));
  if (!(p >= 0 && p < 1)) return bad(fmt::format("dropout: p = {}: expected a number from 0 to below 1", p));
  if (!training || p == 0) return a;
  RILLE_TRY(const auto x, contiguous(a));
  kernels::Attrs attrs;
  attrs.f[0] = p;
  return apply_one(OpId::dropout, attrs, {x}, {x.dtype(), x.shape()});
}

void gradient::dropout(Backward& b) {
  const Tensor g = b(contiguous(b.g()));
  if (b.error()) return;
  const Tensor out = make_tensor(g.graph(), g.dtype(), g.shape());
  if (auto r = record_keyed(g.graph(), OpId::dropout, b.attrs(), b.fn().random, {g}, {out}); !r)
    b.error() = std::move(r).error();
  b.set(0, out);
}

Result<Tensor> multinomial(const Tensor& probabilities) {
  RILLE_CHECK(need_float("multinomial", probabilities));
  if (probabilities.rank() == 0 || probabilities.size(-1) == 0) {
    return bad(fmt::format("multinomial: {}: expected [.., c]", to_string(probabilities.shape())));
  }
  const auto n = probabilities.size(-1);
  RILLE_TRY(const auto rows, reshape(probabilities.detach(), dims_of({probabilities.count() / n, n})));
  RILLE_TRY(const auto whole, contiguous(rows));
  RILLE_TRY(const auto picks, apply_one(OpId::multinomial, {}, {whole}, {DType::i64, dims_of({rows.size(0)})}));
  Dims shape = probabilities.shape();
  --shape.n;
  return view(picks, shape);
}

// Expands each row of probabilities to `draws` rows and draws once per row.
Result<Tensor> multinomial(const Tensor& probabilities, std::int64_t draws) {
  RILLE_CHECK(need_float("multinomial", probabilities));
  if (draws < 1 || probabilities.rank() == 0 || probabilities.rank() == kernels::max_rank)
    return bad(fmt::format("multinomial: {} draws from {}: expected one or more from [.., c]", draws,
                           to_string(probabilities.shape())));
  RILLE_TRY(const auto rows, unsqueeze(probabilities.detach(), -2));
  Dims shape = rows.shape();
  shape[shape.n - 2] = draws;
  RILLE_TRY(const auto repeated, expand(rows, shape));
  return multinomial(repeated);
}

}  // namespace rille::tensor
