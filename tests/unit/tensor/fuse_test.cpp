// Element-wise operations that run as one: the same bits as one by one, whatever is between them.
#include <random>

#include "fixture.hpp"

namespace rille::tensor {
namespace {

using Chance = std::mt19937;

int below(Chance& chance, int n) { return int(chance() % unsigned(n)); }

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
      case 13: {                                     // what is read later must be of before or after, as written
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

bool same_bits(const Tensor& a, const Tensor& b) { return a.shape() == b.shape() && bits(a) == bits(b); }

std::vector<Tensor> replayed(Compiled& c, const std::vector<Tensor>& in,
                             const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& fn) {
  std::vector<Tensor> out;
  for (int call = 0; call < 3; ++call)
    out = get(c.begin(in)) == Compiled::Next::replayed ? c.outputs() : get(c.end(fn(c.arguments())));
  return out;
}

}  // namespace

TEST_CASE("programs of element-wise operations give the same bits when they run as one", "[unit][tensor]") {
  int joined = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const DType dtype = seed % 4 == 3 ? DType::bf16 : seed % 4 == 2 ? DType::f64 : DType::f32;
    auto g = new_graph();
    g->manual_seed(seed);
    const std::vector<Tensor> in = {get(randn(*g, dims({6, 5, 4}), dtype)), get(randn(*g, dims({30, 4}), dtype)),
                                    get(permute(get(randn(*g, dims({4, 6, 5}), dtype)), dims({1, 2, 0})))};
    const auto fn = [&](const std::vector<Tensor>& x) { return Program(*g, seed, dtype, x).run(4 + int(seed % 40)); };
    const auto plain = fn(in);
    Compiled c(g, false, Recompute(seed % 3));
    const auto out = replayed(c, in, fn);
    REQUIRE(out.size() == plain.size());
    INFO("seed " << seed);
    for (std::size_t i = 0; i < out.size(); ++i) REQUIRE(same_bits(out[i], plain[i]));
    for (const auto& row : c.info().costs) joined += row.name == "fused" ? int(row.calls) : 0;
  }
  CHECK(joined > 400);
}

TEST_CASE("a chain of element-wise operations reads and writes memory once", "[unit][tensor]") {
  auto g = new_graph();
  Compiled c(g);
  const auto x = get(randn(*g, dims({300, 1000}))), bias = get(randn(*g, dims({1000})));
  const auto fn = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{get(mul(get(gelu(get(add(in[0], in[1])))), 0.5))};
  };
  const auto plain = fn({x, bias});
  const auto out = replayed(c, {x, bias}, fn);
  CHECK(same_bits(out[0], plain[0]));
  const auto info = c.info();
  REQUIRE(info.costs.size() == 1);
  CHECK(info.costs[0].name == "fused");
  CHECK(info.costs[0].shape.substr(0, 14) == "add+gelu+mul: ");
  CHECK(info.costs[0].cost.bytes == 4.0 * (2 * 300 * 1000 + 1000));
  CHECK(info.arena_bytes == 0);
}

TEST_CASE("a longer chain than one operation takes is cut, and whole numbers that could be divided by zero stay alone",
          "[unit][tensor]") {
  auto g = new_graph();
  Compiled c(g);
  const auto x = get(randn(*g, dims({7, 9})));
  const auto fn = [&](const std::vector<Tensor>& in) {
    auto y = in[0];
    for (int i = 0; i < 60; ++i) y = get(add(get(mul(y, 0.99)), in[0]));
    return std::vector<Tensor>{y};
  };
  const auto plain = fn({x});
  CHECK(same_bits(replayed(c, {x}, fn)[0], plain[0]));
  CHECK(c.info().calls >= 5);
  CHECK(c.info().calls <= 10);

  Compiled d(g);
  const auto n = get(from_numbers(*g, dims({3}), DType::i64, {7, 8, 9}));
  const auto zero = get(from_numbers(*g, dims({3}), DType::i64, {2, 0, 3}));
  const auto divide = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{get(add(get(floor_divide(get(mul(in[0], 2)), in[1])), 1))};
  };
  CHECK(numbers(replayed(d, {n, n}, divide)[0]) == std::vector<double>(3, 3));
  const auto bad = replayed(d, {n, zero}, divide)[0];
  CHECK_FALSE(g->read_blocking(bad).ok());
}

}  // namespace rille::tensor
