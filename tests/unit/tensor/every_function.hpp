// One function of tensors that asks for every element-wise operation which may stand in a group, with gradients.
#pragma once

#include "fixture.hpp"

namespace rille::tensor {

// Operations that are functions of a number in (-1, 1), or of one near 1.
inline std::vector<Tensor> functions_of(const Tensor& x) {
  const auto near = get(add(get(mul(x, 0.25)), 1.5));
  std::vector<Tensor> out;
  const auto push = [&](Result<Tensor> t) { out.push_back(get(std::move(t))); };
  for (auto* f : {&neg,  &abs,  &exp,  &expm1, &tanh, &sigmoid,   &relu,        &sin,  &cos,   &tan,  &asin,  &acos,
                  &atan, &sinh, &cosh, &erf,   &silu, &hardswish, &hardsigmoid, &sign, &floor, &ceil, &round, &trunc})
    push((*f)(x));
  for (auto* f : {&log, &sqrt, &rsqrt, &log1p}) push((*f)(near));
  push(gelu(x));
  push(gelu(x, true));
  push(leaky_relu(x, 0.1));
  push(elu(x, 0.7));
  push(softplus(x, 2));
  push(clamp(x, -0.5, 0.25));
  push(pow(near, 2));
  push(pow(near, x));
  push(rpow(x, 3));
  push(atan2(x, near));
  push(maximum(x, 0.125));
  push(minimum(x, near));
  push(div(x, near));
  push(rsub(x, 1));
  push(floor_divide(x, 0.375));
  push(remainder(x, near));
  return out;
}

// Comparisons, choices, bits, casts: of x in any type, and whole numbers.
inline std::vector<Tensor> without_gradients(const Tensor& x) {
  const auto y = get(mul(x, 0.5));
  const auto whole = get(cast(get(mul(x, 9)), DType::i64));
  std::vector<Tensor> out;
  Tensor mask = get(lt(x, y));
  for (const auto& m : {get(le(x, y)), get(gt(x, 0.125)), get(ge(x, y)), get(eq(x, y)), get(ne(x, x))})
    mask = get(bitwise_xor(mask, m));
  mask = get(bitwise_and(get(bitwise_not(mask)), get(bitwise_or(mask, get(lt(whole, 2))))));
  out.push_back(get(where(mask, x, y)));
  auto number = get(bitwise_and(get(bitwise_not(get(add(get(mul(whole, 3)), whole)))), get(maximum(whole, 1))));
  out.push_back(get(neg(get(sign(get(sub(number, get(abs(whole)))))))));
  Tensor turned = x;
  for (const DType t : {DType::i32, DType::f16, DType::i8, DType::u8, DType::bf16, DType::f64, DType::f32})
    turned = get(cast(get(add(turned, t == DType::u8 ? 3.0 : 1.0)), t));
  out.push_back(turned);
  return out;
}

// All of these at x, and the sum's gradient by `leaf`, which is zeros and is left without one.
inline std::vector<Tensor> with_gradients(const Tensor& x, Tensor leaf) {
  auto out = without_gradients(x);
  Tensor sum;
  for (const auto& t : functions_of(get(add(x, leaf)))) sum = sum ? get(add(sum, t)) : t;
  out.push_back(sum.detach());
  get(backward(get(tensor::sum(get(mul(sum, 0.75))))));
  out.push_back(leaf.grad());
  get(leaf.set_grad({}));
  return out;
}

}  // namespace rille::tensor
