// Gradient rules of element-wise operations. An operation with one input and a number in attrs.f[0] has a number as
// operand: the left one if attrs.i[0] is 1, else the right one. Operands are broadcast by a separate expand, which has
// its own rule.
#include <cmath>

#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor::gradient {

namespace {

bool scalar(const Backward& b) { return b.inputs() == 1; }
bool left(const Backward& b) { return b.attrs().i[0] == 1; }
double number(const Backward& b) { return b.attrs().f[0]; }

// Sets the input's gradient by kernel `id`, from the kept tensor and the result's gradient.
void fused(Backward& b, OpId id, const Tensor& kept) {
  b.set(0, b(apply_one(id, b.attrs(), {kept, b.g()}, b.in_spec(0))));
}

// times() sets the input's gradient to g * slope, over() sets it to g / slope.
void times(Backward& b, Result<Tensor> slope) { b.set(0, b(tensor::mul(b.g(), b(std::move(slope))))); }
void over(Backward& b, Result<Tensor> slope) { b.set(0, b(tensor::div(b.g(), b(std::move(slope))))); }

}  // namespace

void add(Backward& b) {
  for (std::size_t i = 0; i < b.inputs(); ++i) b.set(i, b.g());
}

void sub(Backward& b) {
  if (scalar(b)) return b.set(0, left(b) ? b(tensor::neg(b.g())) : b.g());
  b.set(0, b.g());
  if (b.needs(1)) b.set(1, b(tensor::neg(b.g())));
}

void mul(Backward& b) {
  if (scalar(b)) return b.set(0, b(tensor::mul(b.g(), number(b))));
  if (b.needs(0)) b.set(0, b(tensor::mul(b.g(), b.in(1))));
  if (b.needs(1)) b.set(1, b(tensor::mul(b.g(), b.in(0))));
}

void div(Backward& b) {
  if (scalar(b) && !left(b)) return b.set(0, b(tensor::div(b.g(), number(b))));
  // d(x/y)/dy = -x/y/y: dividing twice, because y^2 soon overflows or underflows in f16, and sometimes in f32.
  const Tensor& y = scalar(b) ? b.in(0) : b.in(1);
  if (scalar(b)) return times(b, tensor::div(b(tensor::rdiv(y, -number(b))), y));
  if (b.needs(0)) b.set(0, b(tensor::div(b.g(), y)));
  if (b.needs(1)) b.set(1, b(tensor::mul(b(tensor::neg(b.g())), b(tensor::div(b(tensor::div(b.in(0), y)), y)))));
}

// d(x^y)/dx = y x^(y-1), or 0 where y is 0. d(x^y)/dy = x^y ln x, or 0 where x is 0 and y is not negative.
void pow(Backward& b) {
  const auto without = [&](const Tensor& slope, const Tensor& flat) { return b(tensor::masked_fill(slope, flat, 0)); };
  if (scalar(b)) {
    if (left(b)) {
      const Tensor slope = b(tensor::mul(b(tensor::mul(b.g(), b.out())), std::log(number(b))));
      return b.set(0, number(b) == 0 ? without(slope, b(tensor::ge(b.in(0), 0.0))) : slope);
    }
    if (number(b) == 0) return flat(b);
    return b.set(0, b(tensor::mul(b(tensor::mul(b.g(), b(tensor::pow(b.in(0), number(b) - 1)))), number(b))));
  }
  if (b.needs(0)) {
    const Tensor slope = b(tensor::mul(b.in(1), b(tensor::pow(b.in(0), b(tensor::sub(b.in(1), 1.0))))));
    b.set(0, b(tensor::mul(b.g(), without(slope, b(tensor::eq(b.in(1), 0.0))))));
  }
  if (!b.needs(1)) return;
  const Tensor slope = b(tensor::mul(b.out(), b(tensor::log(b.in(0)))));
  const Tensor zero = b(tensor::logical_and(b(tensor::eq(b.in(0), 0.0)), b(tensor::ge(b.in(1), 0.0))));
  b.set(1, b(tensor::mul(b.g(), without(slope, zero))));
}

namespace {
// Passes the gradient to the operand that was chosen; equal operands get half each.
void choose(Backward& b, bool larger) {
  const auto share = [&](const Tensor& mine, const Tensor* other) {
    const Tensor wins = b(other ? (larger ? tensor::gt(mine, *other) : tensor::lt(mine, *other))
                                : (larger ? tensor::gt(mine, number(b)) : tensor::lt(mine, number(b))));
    const Tensor ties = b(other ? tensor::eq(mine, *other) : tensor::eq(mine, number(b)));
    const Tensor weight =
        b(tensor::add(b(tensor::cast(wins, b.g().dtype())), b(tensor::mul(b(tensor::cast(ties, b.g().dtype())), 0.5))));
    return b(tensor::mul(b.g(), weight));
  };
  if (scalar(b)) return b.set(0, share(b.in(0), nullptr));
  if (b.needs(0)) b.set(0, share(b.in(0), &b.in(1)));
  if (b.needs(1)) b.set(1, share(b.in(1), &b.in(0)));
}
}  // namespace

void maximum(Backward& b) { choose(b, true); }
void minimum(Backward& b) { choose(b, false); }

void neg(Backward& b) { b.set(0, b(tensor::neg(b.g()))); }
void abs(Backward& b) { fused(b, OpId::abs_grad, b.in(0)); }
void exp(Backward& b) { b.set(0, b(tensor::mul(b.g(), b.out()))); }
void log(Backward& b) { b.set(0, b(tensor::div(b.g(), b.in(0)))); }
void sqrt(Backward& b) { b.set(0, b(tensor::div(b(tensor::mul(b.g(), 0.5)), b.out()))); }
void rsqrt(Backward& b) {
  const Tensor cubed = b(tensor::mul(b(tensor::mul(b.out(), b.out())), b.out()));
  b.set(0, b(tensor::mul(b(tensor::mul(b.g(), cubed)), -0.5)));
}
void tanh(Backward& b) { fused(b, OpId::tanh_grad, b.out()); }
void sigmoid(Backward& b) { fused(b, OpId::sigmoid_grad, b.out()); }
void relu(Backward& b) { fused(b, OpId::relu_grad, b.out()); }
void gelu(Backward& b) { fused(b, OpId::gelu_grad, b.in(0)); }

void gelu_erf(Backward& b) { fused(b, OpId::gelu_erf_grad, b.in(0)); }
void clamp(Backward& b) { fused(b, OpId::clamp_grad, b.in(0)); }
void silu(Backward& b) { fused(b, OpId::silu_grad, b.in(0)); }
void leaky_relu(Backward& b) { fused(b, OpId::leaky_relu_grad, b.in(0)); }
void elu(Backward& b) { fused(b, OpId::elu_grad, b.in(0)); }
void softplus(Backward& b) { fused(b, OpId::softplus_grad, b.in(0)); }
void hardswish(Backward& b) { fused(b, OpId::hardswish_grad, b.in(0)); }
void hardsigmoid(Backward& b) { fused(b, OpId::hardsigmoid_grad, b.in(0)); }

void expm1(Backward& b) { times(b, tensor::add(b.out(), 1.0)); }
void log1p(Backward& b) { over(b, tensor::add(b.in(0), 1.0)); }
void sin(Backward& b) { times(b, tensor::cos(b.in(0))); }
void cos(Backward& b) { times(b, tensor::neg(b(tensor::sin(b.in(0))))); }
void tan(Backward& b) { times(b, tensor::add(b(tensor::square(b.out())), 1.0)); }
void asin(Backward& b) { times(b, tensor::rsqrt(b(tensor::rsub(b(tensor::square(b.in(0))), 1.0)))); }
void acos(Backward& b) {
  asin(b);
  b.set(0, b(tensor::neg(b.result()[0])));
}
void atan(Backward& b) { over(b, tensor::add(b(tensor::square(b.in(0))), 1.0)); }
void sinh(Backward& b) { times(b, tensor::cosh(b.in(0))); }
void cosh(Backward& b) { times(b, tensor::sinh(b.in(0))); }
// d erf(x)/dx = 2/sqrt(pi) e^-x^2
void erf(Backward& b) {
  times(b, tensor::mul(b(tensor::exp(b(tensor::neg(b(tensor::square(b.in(0))))))), 1.1283791670955126));
}

// Step functions have a gradient of zero everywhere.
void flat(Backward& b) {
  for (std::size_t i = 0; i < b.inputs(); ++i) {
    if (!b.needs(i)) continue;
    const Tensor zero = b(zeros(b.g().graph(), {}, b.in_spec(i).dtype));
    b.set(i, b(tensor::expand(zero, b.in_spec(i).shape)));
  }
}

// remainder(a, b) = a - b floor(a/b) has the derivatives 1 and -floor(a/b).
void remainder(Backward& b) {
  if (scalar(b) && !left(b)) return b.set(0, b.g());
  if (scalar(b)) return times(b, tensor::neg(b(rfloor_divide(b.in(0), number(b)))));
  if (b.needs(0)) b.set(0, b.g());
  if (b.needs(1)) b.set(1, b(tensor::mul(b.g(), b(tensor::neg(b(tensor::floor_divide(b.in(0), b.in(1))))))));
}

// atan2(y, x) has the derivatives x/(x^2 + y^2) and -y/(x^2 + y^2), taken as 0 if both operands are 0.
void atan2(Backward& b) {
  const auto slopes = [&](const Tensor& y, const Tensor& x) {
    const Tensor squares = b(tensor::add(b(tensor::square(y)), b(tensor::square(x))));
    const Tensor each = b(tensor::masked_fill(b(tensor::div(b.g(), squares)), b(tensor::eq(squares, 0.0)), 0));
    return std::pair{b(tensor::mul(each, x)), b(tensor::neg(b(tensor::mul(each, y))))};
  };
  if (!scalar(b)) {
    auto [first, second] = slopes(b.in(0), b.in(1));
    b.set(0, first);
    return b.set(1, second);
  }
  const Tensor constant = b(full(b.g().graph(), {}, number(b), b.in_spec(0).dtype));
  const Tensor other = b(tensor::expand(constant, b.in_spec(0).shape));
  b.set(0, left(b) ? slopes(other, b.in(0)).second : slopes(b.in(0), other).first);
}

void where(Backward& b) {
  const Tensor zero = b(tensor::expand(b(zeros(b.g().graph(), {}, b.g().dtype())), b.g().shape()));
  if (b.needs(1)) b.set(1, b(tensor::where(b.in(0), b.g(), zero)));
  if (b.needs(2)) b.set(2, b(tensor::where(b.in(0), zero, b.g())));
}

void cast(Backward& b) { b.set(0, b(tensor::cast(b.g(), b.in_spec(0).dtype))); }

}  // namespace rille::tensor::gradient
