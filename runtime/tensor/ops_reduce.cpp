#include "runtime/tensor/check.hpp"

namespace rille::tensor {

namespace {

// The input with the reduced dimensions last (a view), and the shape of the result.
struct Reduction {
  Tensor moved;
  Dims outer, kept;                    // without and with the reduced dimensions as 1
  kernels::Attrs attrs;                // i[0]: how many are reduced
  std::int64_t reduced = 1;            // elements of each
};

Result<Reduction> plan_reduction(const char* op, const Tensor& a, const std::vector<int>& dims) {
  RILLE_CHECK(need(op, a));
  unsigned mask = 0;
  for (const int dim : dims) {
    RILLE_TRY(const int d, normal_dim(op, dim, a.rank()));
    mask |= 1u << d;
  }
  if (dims.empty()) mask = (1u << a.rank()) - 1;
  Reduction r;
  Dims order, last;
  r.kept = a.shape();
  for (int i = 0; i < a.rank(); ++i) {
    if (mask >> i & 1) {
      last.push(i);
      r.kept[i] = 1;
      r.reduced *= a.shape()[i];
    } else {
      order.push(i);
      r.outer.push(a.shape()[i]);
    }
  }
  for (int i = 0; i < last.n; ++i) order.push(last[i]);
  r.attrs.i[0] = last.n;
  RILLE_TRY(r.moved, permute(a, order));
  return r;
}

Result<Tensor> finish(Result<Tensor> result, const Reduction& r, bool keepdim) {
  if (!result || !keepdim) return result;
  return view(*result, r.kept);
}

Result<Tensor> extreme(OpId id, const char* op, const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  RILLE_TRY(auto r, plan_reduction(op, a, dims));
  if (a.dtype() == DType::bf16) RILLE_CHECK(need_float(op, a));
  if (r.reduced == 0) return bad(fmt::format("{}: {} has nothing to choose from", op, to_string(a.shape())));
  return finish(apply_one(id, r.attrs, {r.moved}, {a.dtype(), r.outer}), r, keepdim);
}

// dim moved to the end and contiguous; undone by the second transpose.
template <class F>
Result<Tensor> over_last(const char* op, const Tensor& a, int dim, const F& f) {
  RILLE_CHECK(need_float(op, a));
  RILLE_TRY(const int d, normal_dim(op, dim, a.rank()));
  RILLE_TRY(const auto moved, transpose(a, d, -1));
  RILLE_TRY(const auto rows, contiguous(d == a.rank() - 1 ? a : moved));
  RILLE_TRY(const auto y, f(rows));
  return d == a.rank() - 1 ? Result<Tensor>(y) : transpose(y, d, -1);
}

}  // namespace

Result<Tensor> sum(const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  RILLE_TRY(auto r, plan_reduction("sum", a, dims));
  if (a.dtype() == DType::bf16) RILLE_CHECK(need_float("sum", a));
  return finish(
      apply_one(OpId::sum, r.attrs, {r.moved}, {is_floating(a.dtype()) ? a.dtype() : DType::i64, r.outer}), r,
      keepdim);
}

Result<Tensor> mean(const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  RILLE_TRY(const auto x, as_float("mean", a));
  RILLE_TRY(auto r, plan_reduction("mean", x, dims));
  r.attrs.f[0] = 1.0 / double(r.reduced);
  return finish(apply_one(OpId::sum, r.attrs, {r.moved}, {x.dtype(), r.outer}), r, keepdim);
}

Result<Tensor> max(const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  return extreme(OpId::amax, "max", a, dims, keepdim);
}
Result<Tensor> min(const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  return extreme(OpId::amin, "min", a, dims, keepdim);
}

Result<Tensor> argmax(const Tensor& a, int dim, bool keepdim) {
  RILLE_TRY(auto r, plan_reduction("argmax", a, {dim}));
  if (a.dtype() == DType::bf16) RILLE_CHECK(need_float("argmax", a));
  if (r.reduced == 0) return bad(fmt::format("argmax: {} has nothing to choose from", to_string(a.shape())));
  return finish(apply_one(OpId::argmax, r.attrs, {r.moved.detach()}, {DType::i64, r.outer}), r, keepdim);
}

Result<Tensor> softmax(const Tensor& a, int dim) {
  return over_last("softmax", a, dim, [](const Tensor& x) {
    return apply_one(OpId::softmax, {}, {x}, {x.dtype(), x.shape()});
  });
}
Result<Tensor> log_softmax(const Tensor& a, int dim) {
  return over_last("log_softmax", a, dim, [](const Tensor& x) {
    return apply_one(OpId::log_softmax, {}, {x}, {x.dtype(), x.shape()});
  });
}

}  // namespace rille::tensor
