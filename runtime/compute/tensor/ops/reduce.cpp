// Reductions, cumsum and their gradients.
#include <cmath>

#include "runtime/compute/tensor/check.hpp"
#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

namespace {

// The input viewed with the reduced dimensions last, and the shape of the result.
struct Reduction {
  Tensor moved;
  Dims outer, kept;          // shape of the result: outer without the reduced dimensions, kept with size 1 in them
  kernels::Attrs attrs;      // i[0] is the number of reduced dimensions
  std::int64_t reduced = 1;  // number of elements reduced to one result
};

Result<Reduction> plan_reduction(const char* op, const Tensor& a, const std::vector<int>& dims) {
  RILLE_CHECK(need(op, a));
  unsigned mask = 0;
  for (const int dim : dims) {
    RILLE_TRY(const int d, normal_dim(op, dim, a.rank()));
    if (mask >> d & 1)
      return bad(fmt::format("{}: dimension {} of {} is named twice", op, d + 1, to_string(a.shape())));
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
  if (r.reduced == 0) return bad(fmt::format("{}: {} has no elements to choose from", op, to_string(a.shape())));
  return finish(apply_one(id, r.attrs, {r.moved}, {a.dtype(), r.outer}), r, keepdim);
}

}  // namespace

Result<Tensor> sum(const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  RILLE_TRY(auto r, plan_reduction("sum", a, dims));
  return finish(apply_one(OpId::sum, r.attrs, {r.moved}, {is_floating(a.dtype()) ? a.dtype() : DType::i64, r.outer}), r,
                keepdim);
}

namespace {

// The number of elements that are reduced to one result.
std::int64_t reduced_count(const Tensor& a, const std::vector<int>& dims) {
  std::int64_t n = 1;
  for (const int d : dims) n *= a.size(d);
  return dims.empty() ? a.count() : n;
}

// Sums integers exactly (i64 in f64), then divides the sum and rounds once.
Result<Tensor> mean_of_integers(const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  RILLE_TRY(const auto x, cast(a, a.dtype() == DType::i64 ? DType::f64 : a.dtype()));
  RILLE_TRY(const auto total, sum(x, dims, keepdim));
  RILLE_TRY(const auto wide, cast(total, DType::f64));
  RILLE_TRY(const auto each, div(wide, double(reduced_count(a, dims))));
  return cast(each, DType::f32);
}

// The type in which differences and squares are summed; the result is rounded once.
DType wide_type(DType t) {
  if (is_half(t)) return DType::f32;
  if (is_floating(t)) return t;
  return t == DType::i32 || t == DType::i64 ? DType::f64 : DType::f32;
}
DType float_type(DType t) { return is_floating(t) ? t : DType::f32; }

// The root of `total`. A root has no derivative at zero; the gradient there is set to zero.
Result<Tensor> root_of(const Tensor& total, double p) {
  RILLE_TRY(const auto nothing, eq(total, 0.0));
  RILLE_TRY(const auto safe, masked_fill(total, nothing, 1.0));
  RILLE_TRY(const auto root, p == 2 ? sqrt(safe) : pow(safe, 1 / p));
  return masked_fill(root, nothing, 0.0);
}

}  // namespace

Result<Tensor> mean(const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  RILLE_CHECK(need("mean", a));
  RILLE_TRY(auto r, plan_reduction("mean", a, dims));
  if (!is_floating(a.dtype())) return mean_of_integers(a, dims, keepdim);
  r.attrs.f[0] = 1.0 / double(r.reduced);
  return finish(apply_one(OpId::sum, r.attrs, {r.moved}, {a.dtype(), r.outer}), r, keepdim);
}

Result<Tensor> max(const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  return extreme(OpId::amax, "max", a, dims, keepdim);
}
Result<Tensor> min(const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  return extreme(OpId::amin, "min", a, dims, keepdim);
}

namespace {

Result<Tensor> place_of_extreme(OpId id, const Tensor& a, int dim, bool keepdim) {
  RILLE_TRY(auto r, plan_reduction(op_of(id).name, a, {dim}));
  if (r.reduced == 0)
    return bad(fmt::format("{}: {} has no elements to choose from", op_of(id).name, to_string(a.shape())));
  return finish(apply_one(id, r.attrs, {r.moved.detach()}, {DType::i64, r.outer}), r, keepdim);
}

}  // namespace

Result<Tensor> argmax(const Tensor& a, int dim, bool keepdim) {
  return place_of_extreme(OpId::argmax, a, dim, keepdim);
}
Result<Tensor> argmin(const Tensor& a, int dim, bool keepdim) {
  return place_of_extreme(OpId::argmin, a, dim, keepdim);
}

Result<Tensor> prod(const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  RILLE_CHECK(need("prod", a));
  RILLE_TRY(const auto x, cast(a, is_floating(a.dtype()) ? a.dtype() : DType::i64));
  RILLE_TRY(auto r, plan_reduction("prod", x, dims));
  return finish(apply_one(OpId::prod, r.attrs, {r.moved}, {x.dtype(), r.outer}), r, keepdim);
}

namespace {

Result<Tensor> truth_of(OpId id, const char* op, const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  RILLE_CHECK(need(op, a));
  RILLE_TRY(const auto x, cast(a.detach(), DType::boolean));
  RILLE_TRY(auto r, plan_reduction(op, x, dims));
  if (r.reduced == 0) return finish(full(a.graph(), r.outer, id == OpId::amin, DType::boolean), r, keepdim);
  return finish(apply_one(id, r.attrs, {r.moved}, {DType::boolean, r.outer}), r, keepdim);
}

}  // namespace

Result<Tensor> any(const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  return truth_of(OpId::amax, "any", a, dims, keepdim);
}
Result<Tensor> all(const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  return truth_of(OpId::amin, "all", a, dims, keepdim);
}

namespace {

// The variance in the type that wide_type() gives.
Result<Tensor> variance(const Tensor& a, const std::vector<int>& dims, double correction, bool keepdim) {
  RILLE_CHECK(need("var", a));
  RILLE_TRY(const auto x, cast(a, wide_type(a.dtype())));
  RILLE_TRY(const auto m, mean(x, dims, true));
  const double n = double(reduced_count(x, dims)) - correction;
  if (!(n > 0)) {
    return bad(
        fmt::format(
            "var: {} elements of {} with a correction of {}: the divisor, elements minus correction, must be above 0",
            reduced_count(x, dims), to_string(a.shape()), correction),
        "x:var(dims, { correction = 0 }) divides by the count");
  }
  RILLE_TRY(const auto away, sub(x, m));
  RILLE_TRY(const auto squares, square(away));
  RILLE_TRY(const auto total, sum(squares, dims, keepdim));
  return mul(total, 1 / n);
}

}  // namespace

Result<Tensor> var(const Tensor& a, const std::vector<int>& dims, double correction, bool keepdim) {
  RILLE_TRY(const auto v, variance(a, dims, correction, keepdim));
  return cast(v, float_type(a.dtype()));
}
Result<Tensor> std_dev(const Tensor& a, const std::vector<int>& dims, double correction, bool keepdim) {
  RILLE_TRY(const auto v, variance(a, dims, correction, keepdim));
  RILLE_TRY(const auto root, root_of(v, 2));
  return cast(root, float_type(a.dtype()));
}

Result<Tensor> norm(const Tensor& a, double p, const std::vector<int>& dims, bool keepdim) {
  RILLE_CHECK(need("norm", a));
  if (p == HUGE_VAL || p == 1) {
    RILLE_TRY(const auto x, as_float("norm", a));
    RILLE_TRY(const auto sizes, abs(x));
    return p == 1 ? sum(sizes, dims, keepdim) : max(sizes, dims, keepdim);
  }
  if (!(p > 0)) return bad(fmt::format("norm: p = {}: expected a positive number or infinity", p));
  RILLE_TRY(const auto x, cast(a, wide_type(a.dtype())));
  Tensor powers;
  if (p == 2) {
    RILLE_TRY(powers, square(x));
  } else {
    RILLE_TRY(const auto sizes, abs(x));
    RILLE_TRY(powers, pow(sizes, p));
  }
  RILLE_TRY(const auto total, sum(powers, dims, keepdim));
  RILLE_TRY(const auto root, root_of(total, p));
  return cast(root, float_type(a.dtype()));
}

Result<Tensor> logsumexp(const Tensor& a, const std::vector<int>& dims, bool keepdim) {
  RILLE_TRY(const auto x, as_float("logsumexp", a));
  RILLE_TRY(const auto plan, plan_reduction("logsumexp", x, dims));
  if (plan.reduced == 0) {  // no element, so no maximum: the result is log 0
    RILLE_TRY(const auto none, sum(x, dims, keepdim));
    return log(none);
  }
  RILLE_TRY(const auto top, max(x.detach(), dims, true));
  RILLE_TRY(const auto endless, isfinite(top));
  RILLE_TRY(const auto zero, zeros(a.graph(), {}, x.dtype()));
  RILLE_TRY(const auto shift, where(endless, top, zero));
  RILLE_TRY(const auto away, sub(x, shift));
  RILLE_TRY(const auto powers, exp(away));
  RILLE_TRY(const auto total, sum(powers, dims, keepdim));
  RILLE_TRY(const auto height, log(total));
  RILLE_TRY(const auto back, view(shift, height.shape()));
  return add(height, back);
}

Result<Tensor> cumsum(const Tensor& a, int dim) {
  RILLE_CHECK(need("cumsum", a));
  RILLE_TRY(const auto x, cast(a, is_floating(a.dtype()) ? a.dtype() : DType::i64));
  return over_last("cumsum", x, dim, [](const Tensor& rows) {
    return apply_one(OpId::cumsum, {}, {rows}, {rows.dtype(), rows.shape()});
  });
}

namespace {

// Expands a reduction's gradient to the shape of its input. The last attrs.i[0] dimensions of the input were reduced.
Tensor spread(Backward& b, const Tensor& t) {
  const Spec& spec = b.in_spec(0);
  Dims kept = spec.shape;
  for (int i = 0; i < int(b.attrs().i[0]); ++i) kept[spec.shape.n - 1 - i] = 1;
  return b(tensor::expand(b(tensor::view(t, kept)), spec.shape));
}

}  // namespace

void gradient::sum(Backward& b) {
  const double factor = b.attrs().f[0];
  b.set(0, spread(b, factor != 0 ? b(tensor::mul(b.g(), factor)) : b.g()));
}

// The gradient of an element is the product of the other elements. With zeros among them, dividing the total product by
// the element would fail.
void gradient::prod(Backward& b) {
  const Tensor x = b(tensor::contiguous(b.in(0))), g = b(tensor::contiguous(b.g()));
  b.set(0, b(apply_one(OpId::prod_grad, b.attrs(), {x, g}, b.in_spec(0))));
}

void gradient::cumsum(Backward& b) {
  kernels::Attrs attrs = b.attrs();
  attrs.i[0] = !attrs.i[0];
  b.set(0, b(apply_one(OpId::cumsum, attrs, {b(tensor::contiguous(b.g()))}, b.in_spec(0))));
}

// Elements that equal the maximum or minimum share the gradient equally.
void gradient::extreme(Backward& b) {
  const Tensor mask = b(tensor::cast(b(tensor::eq(b.in(0), spread(b, b.out()))), b.g().dtype()));
  std::vector<int> dims;
  for (int i = 0; i < int(b.attrs().i[0]); ++i) dims.push_back(b.in_spec(0).shape.n - 1 - i);
  if (dims.empty()) return b.set(0, b.g());
  const Tensor each = b(tensor::div(b.g(), b(tensor::sum(mask, dims))));
  b.set(0, b(tensor::mul(mask, spread(b, each))));
}

}  // namespace rille::tensor
