// Element-wise operations.
#include <cmath>

#include "runtime/compute/tensor/check.hpp"

namespace rille::tensor {

namespace {

enum class Types { numbers, floats, compare };

Result<Tensor> meet(std::string_view op, const Tensor& t, DType dtype, const Dims& shape) {
  RILLE_CHECK(need(op, t));
  RILLE_TRY(const auto same, cast(t, dtype));
  if (same.shape() == shape) return same;
  return expand(same, shape);
}

DType arithmetic(DType t, Types types) {
  if (types == Types::floats && !is_floating(t)) return DType::f32;
  return types == Types::numbers && t == DType::boolean ? DType::i64 : t;
}

Result<Tensor> binary(OpId id, Types types, const Tensor& a, const Tensor& b) {
  const auto* op = op_of(id).name;
  RILLE_CHECK(need(op, a));
  RILLE_CHECK(need(op, b));
  RILLE_TRY(const auto shape, broadcast(op, a.shape(), b.shape()));
  const DType dtype = arithmetic(promote(a.dtype(), b.dtype()), types);
  RILLE_TRY(const auto x, meet(op, a, dtype, shape));
  RILLE_TRY(const auto y, meet(op, b, dtype, shape));
  return apply_one(id, {}, {x, y}, {types == Types::compare ? DType::boolean : dtype, shape});
}

Result<Tensor> with_number(OpId id, Types types, const Tensor& a, double number, bool left = false) {
  const auto* op = op_of(id).name;
  RILLE_CHECK(need(op, a));
  const DType dtype = beside_number(arithmetic(a.dtype(), types), number);
  RILLE_TRY(const auto x, meet(op, a, dtype, a.shape()));
  kernels::Attrs attrs;
  attrs.f[0] = number;
  attrs.i[0] = left;
  return apply_one(id, attrs, {x}, {types == Types::compare ? DType::boolean : dtype, a.shape()});
}

Result<Tensor> unary(OpId id, const Tensor& a, double f = 0, double g = 0) {
  RILLE_TRY(const auto x, as_float(op_of(id).name, a));
  kernels::Attrs attrs;
  attrs.f[0] = f;
  attrs.f[1] = g;
  return apply_one(id, attrs, {x}, {x.dtype(), x.shape()});
}

// Integers need no rounding but are copied, because a write to the result must not change the operand.
Result<Tensor> rounding(OpId id, const Tensor& a) {
  RILLE_CHECK(need(op_of(id).name, a));
  return is_floating(a.dtype()) ? unary(id, a) : clone(a);
}

// Bitwise operations, on bool and integers only.
Result<Tensor> bits(OpId id, const Tensor& a, const Tensor& b) {
  const auto* op = op_of(id).name;
  for (const Tensor* t : {&a, &b}) {
    RILLE_CHECK(need(op, *t));
    if (!is_floating(t->dtype())) continue;
    return bad(fmt::format("{}: {}{} and {}{}: expected whole numbers or bool", op, name_of(a.dtype()),
                           to_string(a.shape()), name_of(b.dtype()), to_string(b.shape())),
               "cast them: t:to(\"i64\")");
  }
  RILLE_TRY(const auto shape, broadcast(op, a.shape(), b.shape()));
  const DType dtype = promote(a.dtype(), b.dtype());
  RILLE_TRY(const auto x, meet(op, a, dtype, shape));
  RILLE_TRY(const auto y, meet(op, b, dtype, shape));
  return apply_one(id, {}, {x, y}, {dtype, shape});
}

Result<Tensor> truth(const char* op, const Tensor& a) {
  RILLE_CHECK(need(op, a));
  return cast(a, DType::boolean);
}

Result<Tensor> logical(const char* op, Result<Tensor> (*bitwise)(const Tensor&, const Tensor&), const Tensor& a,
                       const Tensor& b) {
  RILLE_TRY(const auto x, truth(op, a));
  RILLE_TRY(const auto y, truth(op, b));
  RILLE_CHECK(broadcast(op, x.shape(), y.shape()));
  return bitwise(x, y);
}

}  // namespace

#define RILLE_BINARY(name, types)                                                                   \
  Result<Tensor> name(const Tensor& a, const Tensor& b) { return binary(OpId::name, types, a, b); } \
  Result<Tensor> name(const Tensor& a, double b) { return with_number(OpId::name, types, a, b); }
RILLE_BINARY(add, Types::numbers)
RILLE_BINARY(sub, Types::numbers)
RILLE_BINARY(mul, Types::numbers)
RILLE_BINARY(div, Types::floats)
RILLE_BINARY(pow, Types::floats)
RILLE_BINARY(maximum, Types::numbers)
RILLE_BINARY(minimum, Types::numbers)
RILLE_BINARY(atan2, Types::floats)
RILLE_BINARY(floor_divide, Types::numbers)
RILLE_BINARY(remainder, Types::numbers)
RILLE_BINARY(lt, Types::compare)
RILLE_BINARY(le, Types::compare)
RILLE_BINARY(gt, Types::compare)
RILLE_BINARY(ge, Types::compare)
RILLE_BINARY(eq, Types::compare)
RILLE_BINARY(ne, Types::compare)
#undef RILLE_BINARY

Result<Tensor> rsub(const Tensor& a, double b) { return with_number(OpId::sub, Types::numbers, a, b, true); }
Result<Tensor> rdiv(const Tensor& a, double b) { return with_number(OpId::div, Types::floats, a, b, true); }
Result<Tensor> rpow(const Tensor& a, double b) { return with_number(OpId::pow, Types::floats, a, b, true); }

namespace {

Result<Tensor> signed_unary(OpId id, const Tensor& a) {
  RILLE_CHECK(need(op_of(id).name, a));
  const DType dtype = a.dtype() == DType::boolean || a.dtype() == DType::u8 ? DType::i64 : a.dtype();
  RILLE_TRY(const auto x, cast(a, dtype));
  return apply_one(id, {}, {x}, {dtype, x.shape()});
}

}  // namespace

Result<Tensor> rfloor_divide(const Tensor& a, double b) {
  return with_number(OpId::floor_divide, Types::numbers, a, b, true);
}
Result<Tensor> rremainder(const Tensor& a, double b) {
  return with_number(OpId::remainder, Types::numbers, a, b, true);
}

Result<Tensor> neg(const Tensor& a) { return signed_unary(OpId::neg, a); }
Result<Tensor> sign(const Tensor& a) { return signed_unary(OpId::sign, a); }
Result<Tensor> abs(const Tensor& a) { return signed_unary(OpId::abs, a); }
Result<Tensor> exp(const Tensor& a) { return unary(OpId::exp, a); }
Result<Tensor> log(const Tensor& a) { return unary(OpId::log, a); }
Result<Tensor> sqrt(const Tensor& a) { return unary(OpId::sqrt, a); }
Result<Tensor> rsqrt(const Tensor& a) { return unary(OpId::rsqrt, a); }
Result<Tensor> tanh(const Tensor& a) { return unary(OpId::tanh, a); }
Result<Tensor> sigmoid(const Tensor& a) { return unary(OpId::sigmoid, a); }
Result<Tensor> relu(const Tensor& a) { return unary(OpId::relu, a); }
Result<Tensor> gelu(const Tensor& a, bool exact) { return unary(exact ? OpId::gelu_erf : OpId::gelu, a); }
Result<Tensor> expm1(const Tensor& a) { return unary(OpId::expm1, a); }
Result<Tensor> log1p(const Tensor& a) { return unary(OpId::log1p, a); }
Result<Tensor> sin(const Tensor& a) { return unary(OpId::sin, a); }
Result<Tensor> cos(const Tensor& a) { return unary(OpId::cos, a); }
Result<Tensor> tan(const Tensor& a) { return unary(OpId::tan, a); }
Result<Tensor> asin(const Tensor& a) { return unary(OpId::asin, a); }
Result<Tensor> acos(const Tensor& a) { return unary(OpId::acos, a); }
Result<Tensor> atan(const Tensor& a) { return unary(OpId::atan, a); }
Result<Tensor> sinh(const Tensor& a) { return unary(OpId::sinh, a); }
Result<Tensor> cosh(const Tensor& a) { return unary(OpId::cosh, a); }
Result<Tensor> erf(const Tensor& a) { return unary(OpId::erf, a); }
Result<Tensor> floor(const Tensor& a) { return rounding(OpId::floor, a); }
Result<Tensor> ceil(const Tensor& a) { return rounding(OpId::ceil, a); }
Result<Tensor> round(const Tensor& a) { return rounding(OpId::round, a); }
Result<Tensor> trunc(const Tensor& a) { return rounding(OpId::trunc, a); }
Result<Tensor> silu(const Tensor& a) { return unary(OpId::silu, a); }
Result<Tensor> leaky_relu(const Tensor& a, double slope) { return unary(OpId::leaky_relu, a, slope); }
Result<Tensor> elu(const Tensor& a, double alpha) { return unary(OpId::elu, a, alpha); }
Result<Tensor> hardswish(const Tensor& a) { return unary(OpId::hardswish, a); }
Result<Tensor> hardsigmoid(const Tensor& a) { return unary(OpId::hardsigmoid, a); }
Result<Tensor> softplus(const Tensor& a, double beta) {
  if (!(beta > 0)) return bad(fmt::format("softplus: beta = {}: expected a positive number", beta));
  return unary(OpId::softplus, a, beta);
}
Result<Tensor> exp2(const Tensor& a) { return rpow(a, 2); }

namespace {

Result<Tensor> log_of_base(const Tensor& a, double base) {
  RILLE_TRY(const auto natural, log(a));
  return mul(natural, 1 / std::log(base));
}

}  // namespace

Result<Tensor> log2(const Tensor& a) { return log_of_base(a, 2); }
Result<Tensor> log10(const Tensor& a) { return log_of_base(a, 10); }
Result<Tensor> reciprocal(const Tensor& a) { return rdiv(a, 1); }
Result<Tensor> square(const Tensor& a) { return mul(a, a); }

Result<Tensor> clamp(const Tensor& a, std::optional<double> low, std::optional<double> high) {
  RILLE_CHECK(need("clamp", a));
  if (!low && !high) return bad("clamp: neither a lower nor an upper bound is given");
  const double l = low.value_or(-HUGE_VAL), h = high.value_or(HUGE_VAL);
  if (!(l <= h)) return bad(fmt::format("clamp: from {} to {}: the lower bound is above the upper one", l, h));
  if (!is_floating(a.dtype())) {  // integers have no infinite bounds, so each bound is applied separately
    Tensor t = a;
    if (low) { RILLE_TRY(t, maximum(t, *low)); }
    return high ? minimum(t, *high) : Result<Tensor>(t);
  }
  return unary(OpId::clamp, a, l, h);
}

Result<Tensor> bitwise_and(const Tensor& a, const Tensor& b) { return bits(OpId::bitwise_and, a, b); }
Result<Tensor> bitwise_or(const Tensor& a, const Tensor& b) { return bits(OpId::bitwise_or, a, b); }
Result<Tensor> bitwise_xor(const Tensor& a, const Tensor& b) { return bits(OpId::bitwise_xor, a, b); }
Result<Tensor> bitwise_not(const Tensor& a) {
  RILLE_CHECK(need("bitwise_not", a));
  if (is_floating(a.dtype())) {
    return bad(
        fmt::format("bitwise_not: {}{}: expected whole numbers or bool", name_of(a.dtype()), to_string(a.shape())),
        "cast it: t:to(\"i64\")");
  }
  return apply_one(OpId::bitwise_not, {}, {a}, {a.dtype(), a.shape()});
}
Result<Tensor> logical_and(const Tensor& a, const Tensor& b) { return logical("logical_and", bitwise_and, a, b); }
Result<Tensor> logical_or(const Tensor& a, const Tensor& b) { return logical("logical_or", bitwise_or, a, b); }
Result<Tensor> logical_xor(const Tensor& a, const Tensor& b) { return logical("logical_xor", bitwise_xor, a, b); }
Result<Tensor> logical_not(const Tensor& a) {
  RILLE_TRY(const auto x, truth("logical_not", a));
  return bitwise_not(x);
}

Result<Tensor> isnan(const Tensor& a) {
  RILLE_CHECK(need("isnan", a));
  return ne(a, a);
}
Result<Tensor> isinf(const Tensor& a) {
  RILLE_CHECK(need("isinf", a));
  if (!is_floating(a.dtype())) return ne(a, a);
  RILLE_TRY(const auto size, abs(a));
  return eq(size, HUGE_VAL);
}
Result<Tensor> isfinite(const Tensor& a) {
  RILLE_CHECK(need("isfinite", a));
  if (!is_floating(a.dtype())) return eq(a, a);
  RILLE_TRY(const auto size, abs(a));
  return lt(size, HUGE_VAL);
}

DType beside_number(DType dtype, double number) {
  if (is_floating(dtype)) return dtype;
  if (number != std::trunc(number) || !(number >= -0x1p63 && number < 0x1p63)) return DType::f32;
  const bool fits = dtype == DType::u8    ? number >= 0 && number <= 255
                    : dtype == DType::i8  ? number >= -128 && number <= 127
                    : dtype == DType::i32 ? number >= -0x1p31 && number < 0x1p31
                                          : dtype == DType::i64;
  return fits ? dtype : DType::i64;
}

Result<Tensor> where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  RILLE_CHECK(need("where", condition));
  RILLE_CHECK(need("where", a));
  RILLE_CHECK(need("where", b));
  if (condition.dtype() != DType::boolean) {
    return bad(fmt::format("where: the condition is {}{}: expected bool", name_of(condition.dtype()),
                           to_string(condition.shape())),
               "make a condition by a comparison: x:gt(0)");
  }
  RILLE_TRY(const auto ab, broadcast("where", a.shape(), b.shape()));
  RILLE_TRY(const auto shape, broadcast("where", condition.shape(), ab));
  const DType dtype = promote(a.dtype(), b.dtype());
  RILLE_TRY(const auto w, expand(condition, shape));
  RILLE_TRY(const auto x, meet("where", a, dtype, shape));
  RILLE_TRY(const auto y, meet("where", b, dtype, shape));
  return apply_one(OpId::where, {}, {w, x, y}, {dtype, shape});
}

Result<Tensor> masked_fill(const Tensor& a, const Tensor& mask, double value) {
  RILLE_CHECK(need("masked_fill", a));
  RILLE_CHECK(need("masked_fill", mask));
  RILLE_TRY(const auto constant, full(a.graph(), {}, value, a.dtype()));
  RILLE_TRY(const auto shape, broadcast("masked_fill", a.shape(), mask.shape()));
  if (mask.dtype() != DType::boolean || !(shape == a.shape())) {
    return bad(fmt::format("masked_fill: {}{} with a mask of {}{}: expected bool, not larger", name_of(a.dtype()),
                           to_string(a.shape()), name_of(mask.dtype()), to_string(mask.shape())));
  }
  return where(mask, constant, a);
}

Result<Tensor> cast(const Tensor& a, DType dtype) {
  RILLE_CHECK(need("cast", a));
  if (a.dtype() == dtype) return a;
  return apply_one(OpId::cast, {}, {a}, {dtype, a.shape()});
}

}  // namespace rille::tensor
