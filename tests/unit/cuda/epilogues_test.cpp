// Products whose activation is the library's epilogue: near to the two one by one, and equal to them where the library
// does not serve.
#include <algorithm>
#include <cmath>

#include "../tensor/programs.hpp"
#include "standin.hpp"

namespace rille::tensor {
namespace {

using test::Standin;

Tensor waves(Graph& g, const Dims& shape, DType dtype, int seed) {
  std::vector<double> v(std::size_t(shape.count()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::sin(double(i * 37 + std::size_t(seed) * 101));
  return get(from_numbers(g, shape, dtype, v));
}

struct Outcome {
  std::vector<Tensor> results;
  int joined = 0;
  std::int64_t library_calls = 0;
};

// relu and gelu of products, and the gradient of the second, which reads the product again.
Outcome run(const Standin& standin, const std::shared_ptr<Graph>& g, DType t, std::int64_t width, bool epilogues) {
  Tensor w = waves(*g, dims({width, 6}), t, 2), b = waves(*g, dims({width}), t, 3);
  for (Tensor* p : {&w, &b}) get(p->set_requires_grad(true));
  const auto fn = [&](const std::vector<Tensor>& in) {
    const auto y = get(gelu(get(linear(in[0], w, b))));
    get(backward(get(sum(get(mul(y, y))))));
    std::vector<Tensor> out{y.detach(), w.grad(), b.grad()};
    for (Tensor* p : {&w, &b}) get(p->set_grad({}));
    out.push_back(get(relu(get(linear(in[0], get(mul(w.detach(), 0.5)), b.detach())))));
    out.push_back(get(gelu(get(linear(in[0], w.detach())))));
    return out;
  };
  Compiled c(g, false, Recompute::none, epilogues);
  const auto before = standin.report().library_calls;
  Outcome o;
  o.results = replayed(c, {waves(*g, dims({2, 5, 6}), t, 1)}, fn);
  for (const auto& r : o.results) numbers(r);
  for (const auto& row : c.info().costs) o.joined += row.name == "linear_activated" ? int(row.calls) : 0;
  o.library_calls = standin.report().library_calls - before;
  return o;
}

}  // namespace

TEST_CASE("activations of products are the library's epilogues where they are asked for", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  const auto plain = run(standin, g, DType::f32, 16, false), joined = run(standin, g, DType::f32, 16, true);
  CHECK(plain.joined == 0);
  CHECK(joined.joined == 3);
  CHECK(joined.library_calls == plain.library_calls);
  for (std::size_t i = 0; i < plain.results.size(); ++i) {
    const auto a = numbers(plain.results[i]), b = numbers(joined.results[i]);
    REQUIRE(a.size() == b.size());
    for (std::size_t k = 0; k < a.size(); ++k) CHECK(b[k] == Approx(a[k]).epsilon(2e-6).margin(2e-6));
  }
  CHECK(std::string(standin.report().wrong) == "");
}

// Both ways round to the half type, the epilogue once less: they differ by few units in the last place of the largest.
TEST_CASE("epilogues of half types see the sum before it is rounded", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  for (const DType t : {DType::bf16, DType::f16}) {
    INFO(name_of(t));
    const double unit = t == DType::bf16 ? 0x1p-8 : 0x1p-11;
    const auto plain = run(standin, g, t, 16, false), joined = run(standin, g, t, 16, true);
    CHECK(plain.joined == 0);
    CHECK(joined.joined == 3);
    CHECK(joined.library_calls > 0);
    CHECK(joined.library_calls == plain.library_calls);
    int other = 0;
    for (std::size_t i = 0; i < plain.results.size(); ++i) {
      INFO("result " << i);
      const auto a = numbers(plain.results[i]), b = numbers(joined.results[i]);
      REQUIRE(a.size() == b.size());
      double most = 0;
      for (const double x : a) most = std::max(most, std::abs(x));
      for (std::size_t k = 0; k < a.size(); ++k) {
        CHECK(std::abs(b[k] - a[k]) <= 8 * unit * most);
        other += b[k] != a[k];
      }
    }
    CHECK(other > 0);  // a rounding was saved somewhere
  }
  CHECK(std::string(standin.report().wrong) == "");
}

TEST_CASE("where the library does not serve, a product and its activation have the bits of the two", "[cuda]") {
  const test::NoHalf declining;
  const Standin standin;
  const auto g = standin.graph();
  for (const DType t : {DType::bf16, DType::f64}) {
    const auto plain = run(standin, g, t, 16, false), joined = run(standin, g, t, 16, true);
    CHECK(joined.joined == 3);
    for (std::size_t i = 0; i < plain.results.size(); ++i) CHECK(same_bits(joined.results[i], plain.results[i]));
  }
  // A leading dimension of 12: the library cannot write the product for the gradient. The other two have no such rule.
  const auto plain = run(standin, g, DType::f32, 12, false), joined = run(standin, g, DType::f32, 12, true);
  for (const std::size_t i : {0, 1, 2}) CHECK(same_bits(joined.results[i], plain.results[i]));
  CHECK(joined.library_calls == plain.library_calls);
}

}  // namespace rille::tensor
