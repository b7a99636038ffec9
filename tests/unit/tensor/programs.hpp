// Random programs of element-wise operations, for tests that they give the same bits however they are run.
#pragma once

#include <functional>
#include <random>

#include "fixture.hpp"

namespace rille::tensor {

using Chance = std::mt19937;

inline int below(Chance& chance, int n) { return int(chance() % unsigned(n)); }

// A random program of `steps` operations on tensors of 6 * 5 * 4 elements, in shapes and layouts that mix.
class Program {
 public:
  Program(Graph& g, unsigned seed, DType dtype, std::vector<Tensor> inputs)
      : graph_(g), chance_(seed), dtype_(dtype), values_(std::move(inputs)) {}

  std::vector<Tensor> run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (i + 1 == values_.size() || below(chance_, 3) == 0) out.push_back(values_[i]);
    return out;
  }

 private:
  Tensor any() { return values_[std::size_t(below(chance_, int(values_.size())))]; }

  // One that can stand beside `a`: of its shape, or broadcast to it.
  Tensor beside(const Tensor& a) {
    for (int tries = 0; tries < 6; ++tries) {
      const auto b = any();
      if (b.shape() == a.shape()) return b;
      if (b.count() == a.count()) return get(reshape(b, a.shape()));
    }
    return get(narrow(a, 0, below(chance_, int(a.shape()[0])), 1));
  }

  void step() {
    const auto a = any();
    switch (below(chance_, 16)) {
      case 0: return push(add(a, beside(a)));
      case 1: return push(mul(a, beside(a)));
      case 2: return push(sub(beside(a), a));
      case 3: return push(maximum(a, beside(a)));
      case 4: return push(mul(a, 0.75));
      case 5: return push(sub(a, 1.25));
      case 6: return push(tanh(a));
      case 7: return push(gelu(a));
      case 8: return push(clamp(a, -1.0, 1.5));
      case 9: return push(where(get(lt(a, beside(a))), a, beside(a)));
      case 10: return push(cast(get(cast(a, dtype_ == DType::f64 ? DType::f32 : DType::bf16)), dtype_));
      case 11: return push(permute(get(reshape(a, dims({6, 5, 4}))), dims({2, 0, 1})));
      case 12: return push(reshape(a, below(chance_, 2) ? dims({30, 4}) : dims({6, 20})));
      case 13: {  // what is read later must be of before or after, as written
        auto written = get(mul(a, 1.0));
        values_.push_back(get(neg(written)));
        REQUIRE(add_(written, beside(a)).ok());
        return push(sub(written, beside(a)));
      }
      case 14: return push(add(get(sum(get(reshape(a, dims({30, 4}))), {1}, true)), get(reshape(a, dims({30, 4})))));
      default: return push(softmax(a, -1));
    }
  }
  void push(Result<Tensor> t) { values_.push_back(get(std::move(t))); }

  Graph& graph_;
  Chance chance_;
  DType dtype_;
  std::vector<Tensor> values_;
};

inline bool same_bits(const Tensor& a, const Tensor& b) { return a.shape() == b.shape() && bits(a) == bits(b); }

inline std::vector<Tensor> replayed(Compiled& c, const std::vector<Tensor>& in,
                                    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& fn) {
  std::vector<Tensor> out;
  for (int call = 0; call < 3; ++call)
    out = get(c.begin(in)) == Compiled::Next::replayed ? c.outputs() : get(c.end(fn(c.arguments())));
  return out;
}

}  // namespace rille::tensor
