// Operations that write into the memory of an existing tensor.
#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/ops/make.hpp"

namespace rille::tensor {

namespace {

// Whether several elements of the window share one memory location.
bool repeats(const Window& w) {
  for (int d = 0; d < w.shape.n; ++d)
    if (w.shape[d] > 1 && w.strides[d] == 0) return w.shape.count() > 0;
  return false;
}

// The bytes [first, end) of a window in its storage.
std::pair<std::int64_t, std::int64_t> reach(const Window& w) {
  std::int64_t first = w.offset, last = w.offset;
  for (int d = 0; d < w.shape.n; ++d) (w.strides[d] < 0 ? first : last) += (w.shape[d] - 1) * w.strides[d];
  const auto each = std::int64_t(size_bytes(w.dtype));
  return {first * each, (last + 1) * each};
}

// Returns `x`, or a copy if writing `a` would change elements of `x` before they are read.
Result<Tensor> unharmed(const Tensor& a, const Tensor& x) {
  const Window &to = a.impl()->window, &from = x.impl()->window;
  if (x.impl()->storage != a.impl()->storage || from == to || x.count() == 0) return x;
  const auto [to_first, to_end] = reach(to);
  const auto [from_first, from_end] = reach(from);
  if (from_end <= to_first || to_end <= from_first) return x;
  return clone(x);
}

Result<void> may_write(const char* op, const Tensor& a) {
  RILLE_CHECK(need(op, a));
  if (!a.graph().grad_enabled() || !a.requires_grad()) return success();
  return make_error(
      ErrorKind::state,
      fmt::format("{}: {} {} is overwritten while gradients are recorded", op,
                  a.is_leaf() ? "a leaf that requires grad," : "a result with history,", to_string(a.shape())),
      "write inside no_grad, or use the form that makes a new tensor");
}

// Refuses an in-place update of a tensor whose elements share memory, where the result is undefined. Filling such a
// tensor with one value is allowed.
Result<void> may_update(const char* op, const Tensor& a) {
  RILLE_CHECK(may_write(op, a));
  if (!repeats(a.impl()->window)) return success();
  return bad(
      fmt::format(
          "{}: {}{} with strides {}: several of its elements share one place in memory, so it cannot be written to", op,
          name_of(a.dtype()), to_string(a.shape()), to_string(a.strides())),
      "write to t:clone(), or write before the tensor is expanded");
}

// Refuses to add or multiply fractions into integers: the result would be truncated without a message.
Result<void> may_join(const char* op, const Tensor& a, DType with) {
  if (is_floating(a.dtype()) || !is_floating(with)) return success();
  return bad(fmt::format("{}: {} is written into {}{}: fractions would be cut off", op, name_of(with),
                         name_of(a.dtype()), to_string(a.shape())),
             fmt::format("cast one: u:to(\"{}\"), or the form that makes a new tensor", name_of(a.dtype())));
}

// `b` expanded to the shape of `a`, and copied if the write would change it. Error state: `b` requires grad, but a
// write into memory records no history, so `b` would get no gradient.
Result<Tensor> fitted(const char* op, const Tensor& a, const Tensor& b) {
  RILLE_CHECK(need(op, b));
  if (a.graph().grad_enabled() && b.requires_grad() && is_floating(a.dtype())) {
    return make_error(ErrorKind::state,
                      fmt::format("{}: a value that requires grad, {}, is written into {}, which keeps no history", op,
                                  to_string(b.shape()), to_string(a.shape())),
                      "its gradient would be lost: use the form that makes a new tensor (a + b, rille.cat, t:scatter); "
                      "or, if no gradient is needed, write value:detach(), or write inside no_grad");
  }
  RILLE_TRY(const auto shape, broadcast(op, a.shape(), b.shape()));
  if (!(shape == a.shape())) {
    return bad(
        fmt::format("{}: {} is written into {}: a target cannot grow", op, to_string(b.shape()), to_string(a.shape())));
  }
  RILLE_TRY(const auto wide, expand(b.detach(), shape));
  return unharmed(a, wide);
}

Result<void> add_to(const char* op, Tensor& a, const Tensor& b, double alpha) {
  RILLE_CHECK(may_update(op, a));
  RILLE_TRY(const auto wide, fitted(op, a, b));
  RILLE_CHECK(may_join(op, a, alpha == std::trunc(alpha) ? b.dtype() : DType::f64));
  RILLE_TRY(const auto x, cast(wide, a.dtype()));
  kernels::Attrs attrs;
  attrs.f[0] = alpha;
  return record(a.graph(), OpId::axpy, attrs, {x}, {a.detach()}, true);
}

// Divides as the out-of-place form does. Multiplying by the reciprocal would give other bits.
template <class Divisor>
Result<void> divide(Tensor& a, const Divisor& by) {
  if (!is_floating(a.dtype()))
    return bad(fmt::format("div_: {}{}: fractions would be cut off", name_of(a.dtype()), to_string(a.shape())),
               "x:floor_divide(y), or x / y, which makes a new tensor");
  RILLE_TRY(const auto quotient, div(a.detach(), by));
  RILLE_TRY(const auto x, cast(quotient, a.dtype()));
  return record(a.graph(), OpId::copy, {}, {x}, {a.detach()}, true);
}

}  // namespace

Result<void> add_(Tensor& a, const Tensor& b, double alpha) { return add_to("add_", a, b, alpha); }
Result<void> sub_(Tensor& a, const Tensor& b, double alpha) { return add_to("sub_", a, b, -alpha); }

Result<void> mul_(Tensor& a, const Tensor& b) {
  RILLE_CHECK(may_update("mul_", a));
  RILLE_TRY(const auto wide, fitted("mul_", a, b));
  RILLE_CHECK(may_join("mul_", a, b.dtype()));
  RILLE_TRY(const auto x, cast(wide, a.dtype()));
  return record(a.graph(), OpId::scale, {}, {x}, {a.detach()}, true);
}

Result<void> mul_(Tensor& a, double b) {
  RILLE_CHECK(may_update("mul_", a));
  if (!is_floating(a.dtype()) && b != std::trunc(b)) {
    return bad(fmt::format("mul_: {} by {}: the result would not be a whole number", name_of(a.dtype()), b));
  }
  kernels::Attrs attrs;
  attrs.f[0] = b;
  return record(a.graph(), OpId::scale, attrs, {}, {a.detach()}, true);
}

Result<void> div_(Tensor& a, const Tensor& b) {
  RILLE_CHECK(may_update("div_", a));
  RILLE_TRY(const auto x, fitted("div_", a, b));
  return divide(a, x);
}

Result<void> div_(Tensor& a, double b) {
  RILLE_CHECK(may_update("div_", a));
  return divide(a, b);
}

Result<void> copy_(Tensor& a, const Tensor& b) {
  RILLE_CHECK(may_update("copy_", a));
  RILLE_TRY(const auto x, fitted("copy_", a, b));
  return record(a.graph(), OpId::copy, {}, {x}, {a.detach()}, true);
}

Result<void> fill_(Tensor& a, double value) {
  RILLE_CHECK(may_write("fill_", a));
  auto attrs = fill_attrs(value);
  if (a.dtype() == DType::boolean) attrs.i[0] = value != 0;
  Dims once = a.shape();  // elements that share one place are filled once
  for (int d = 0; d < once.n; ++d)
    if (a.strides()[d] == 0 && once[d] > 0) once[d] = 1;
  return record(a.graph(), OpId::fill, attrs, {}, {make_window(a, 0, once, a.strides())}, true);
}

Result<void> zero_(Tensor& a) { return fill_(a, 0); }

}  // namespace rille::tensor
