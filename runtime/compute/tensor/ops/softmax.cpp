// Softmax and its logarithm, along any dimension.
#include "kernels/wide_rows.hpp"
#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

namespace {

// On the CPU, rows whose elements are at least half a cache line apart are processed in place; other strided rows are
// transposed first.
Result<Tensor> softmax_of(const char* name, OpId op, const Tensor& a, int dim) {
  RILLE_CHECK(need_float(name, a));
  RILLE_TRY(const int d, normal_dim(name, dim, a.rank()));
  std::int64_t apart = 1;
  for (int i = d + 1; i < a.rank(); ++i) apart *= a.shape()[i];
  if (apart < 8 || a.graph().device()->executor()) {
    return over_last(name, a, dim, [op](const Tensor& x) { return apply_one(op, {}, {x}, {x.dtype(), x.shape()}); });
  }
  RILLE_TRY(const auto x, contiguous(a));
  kernels::Attrs attrs;
  attrs.i[kernels::apart_at] = apart;
  attrs.i[kernels::column_at] = a.shape()[d];
  return apply_one(op, attrs, {x}, {x.dtype(), x.shape()});
}

}  // namespace

Result<Tensor> softmax(const Tensor& a, int dim) { return softmax_of("softmax", OpId::softmax, a, dim); }
Result<Tensor> log_softmax(const Tensor& a, int dim) { return softmax_of("log_softmax", OpId::log_softmax, a, dim); }

void gradient::softmax(Backward& b) {
  b.set(0, b(apply_one(OpId::softmax_grad, b.attrs(), {b.out(), b(tensor::contiguous(b.g()))}, b.in_spec(0))));
}

void gradient::log_softmax(Backward& b) {
  b.set(0, b(apply_one(OpId::log_softmax_grad, b.attrs(), {b.out(), b(tensor::contiguous(b.g()))}, b.in_spec(0))));
}

}  // namespace rille::tensor
