#include <cmath>

#include "runtime/tensor/check.hpp"

namespace rille::tensor {

namespace {

enum class Types { numbers, floats, compare };

Result<Tensor> meet(std::string_view op, const Tensor& t, DType dtype, const Dims& shape) {
  if (dtype == DType::bf16) return bad(fmt::format("{}: bf16 is stored and cast only", op), "cast to f32 first");
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
  const DType dtype = arithmetic(std::max(a.dtype(), b.dtype()), types);
  RILLE_TRY(const auto x, meet(op, a, dtype, shape));
  RILLE_TRY(const auto y, meet(op, b, dtype, shape));
  return apply_one(id, {}, {x, y}, {types == Types::compare ? DType::boolean : dtype, shape});
}

Result<Tensor> with_number(OpId id, Types types, const Tensor& a, double number, bool left = false) {
  const auto* op = op_of(id).name;
  RILLE_CHECK(need(op, a));
  const bool fractional = number != std::trunc(number) || std::fabs(number) > 9e15;
  DType dtype = arithmetic(a.dtype(), types);
  if (fractional && !is_floating(dtype)) dtype = DType::f32;
  if (dtype == DType::boolean || (dtype == DType::u8 && (number < 0 || number > 255))) dtype = DType::i64;
  RILLE_TRY(const auto x, meet(op, a, dtype, a.shape()));
  kernels::Attrs attrs;
  attrs.f[0] = number;
  attrs.i[0] = left;
  return apply_one(id, attrs, {x}, {types == Types::compare ? DType::boolean : dtype, a.shape()});
}

Result<Tensor> unary(OpId id, const Tensor& a) {
  RILLE_TRY(const auto x, as_float(op_of(id).name, a));
  return apply_one(id, {}, {x}, {x.dtype(), x.shape()});
}

}  // namespace

#define RILLE_BINARY(name, types)                                                                     \
  Result<Tensor> name(const Tensor& a, const Tensor& b) { return binary(OpId::name, types, a, b); }  \
  Result<Tensor> name(const Tensor& a, double b) { return with_number(OpId::name, types, a, b); }
RILLE_BINARY(add, Types::numbers)
RILLE_BINARY(sub, Types::numbers)
RILLE_BINARY(mul, Types::numbers)
RILLE_BINARY(div, Types::floats)
RILLE_BINARY(pow, Types::floats)
RILLE_BINARY(maximum, Types::numbers)
RILLE_BINARY(minimum, Types::numbers)
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
  if (a.dtype() == DType::bf16) RILLE_CHECK(need_float(op_of(id).name, a));
  const DType dtype = a.dtype() == DType::boolean || a.dtype() == DType::u8 ? DType::i64 : a.dtype();
  RILLE_TRY(const auto x, cast(a, dtype));
  return apply_one(id, {}, {x}, {dtype, x.shape()});
}
}  // namespace

Result<Tensor> neg(const Tensor& a) { return signed_unary(OpId::neg, a); }
Result<Tensor> abs(const Tensor& a) { return signed_unary(OpId::abs, a); }
Result<Tensor> exp(const Tensor& a) { return unary(OpId::exp, a); }
Result<Tensor> log(const Tensor& a) { return unary(OpId::log, a); }
Result<Tensor> sqrt(const Tensor& a) { return unary(OpId::sqrt, a); }
Result<Tensor> rsqrt(const Tensor& a) { return unary(OpId::rsqrt, a); }
Result<Tensor> tanh(const Tensor& a) { return unary(OpId::tanh, a); }
Result<Tensor> sigmoid(const Tensor& a) { return unary(OpId::sigmoid, a); }
Result<Tensor> relu(const Tensor& a) { return unary(OpId::relu, a); }
Result<Tensor> gelu(const Tensor& a) { return unary(OpId::gelu, a); }

Result<Tensor> where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  RILLE_CHECK(need("where", condition));
  RILLE_CHECK(need("where", a));
  RILLE_CHECK(need("where", b));
  if (condition.dtype() != DType::boolean) {
    return bad(
        fmt::format("where: a condition of {}{}", name_of(condition.dtype()), to_string(condition.shape())),
        "compare first: x:gt(0)");
  }
  RILLE_TRY(const auto ab, broadcast("where", a.shape(), b.shape()));
  RILLE_TRY(const auto shape, broadcast("where", condition.shape(), ab));
  const DType dtype = std::max(a.dtype(), b.dtype());
  RILLE_TRY(const auto w, expand(condition, shape));
  RILLE_TRY(const auto x, meet("where", a, dtype, shape));
  RILLE_TRY(const auto y, meet("where", b, dtype, shape));
  return apply_one(OpId::where, {}, {w, x, y}, {dtype, shape});
}

Result<Tensor> cast(const Tensor& a, DType dtype) {
  RILLE_CHECK(need("cast", a));
  if (a.dtype() == dtype) return a;
  return apply_one(OpId::cast, {}, {a}, {dtype, a.shape()});
}

Result<Tensor> dropout(const Tensor& a, double p, bool training) {
  RILLE_CHECK(need_float("dropout", a));
  if (!(p >= 0 && p < 1)) return bad(fmt::format("dropout: p = {}: at least 0 and below 1", p));
  if (!training || p == 0) return a;
  RILLE_TRY(const auto x, contiguous(a));
  kernels::Attrs attrs;
  attrs.f[0] = p;
  return apply_one(OpId::dropout, attrs, {x}, {x.dtype(), x.shape()});
}

}  // namespace rille::tensor
