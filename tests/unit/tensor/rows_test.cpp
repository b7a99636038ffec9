// Kernels of rows, on more of them than the declared operations have: columns in tiles, and half types in slabs.
#include <algorithm>
#include <cmath>
#include <functional>

#include "fixture.hpp"

namespace rille::tensor {
namespace {

using Along = Result<Tensor> (*)(const Tensor&, int);

struct Both {
  Tensor value, gradient;
};

// f of a copy of x, and the gradient of sum(f(x) * weights).
Both with_gradient(const Tensor& x, const Tensor& weights, const std::function<Result<Tensor>(const Tensor&)>& f) {
  Tensor leaf = get(clone(x));
  get(leaf.set_requires_grad(true));
  const Tensor y = get(f(leaf));
  get(backward(get(sum(get(mul(y, weights))))));
  return {y.detach(), leaf.grad()};
}

double worst(const Tensor& a, const Tensor& b) {
  const auto x = numbers(a), y = numbers(b);
  REQUIRE(x.size() == y.size());
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::fabs(x[i] - y[i]) / (1 + std::fabs(y[i])));
  return most;
}

}  // namespace

TEST_CASE("softmax along columns is softmax along rows of the turned matrix", "[unit][tensor]") {
  auto graph = new_graph();
  const std::pair<DType, double> types[] = {
      {DType::f64, 1e-13}, {DType::f32, 2e-6}, {DType::bf16, 1e-2}, {DType::f16, 2e-3}};
  for (const Along f : {Along(&softmax), Along(&log_softmax)}) {
    for (const auto& [dtype, tolerance] : types) {
      for (const auto& shape : {dims({2, 130, 530}), dims({300, 512}), dims({3, 1, 8}), dims({1, 65, 3, 21})}) {
        const int d = shape.n == 2 ? 0 : 1, last = shape.n - 1;
        const auto x = get(cast(get(mul(get(randn(*graph, shape)), 4)), dtype));
        const auto weights = get(cast(get(randn(*graph, shape)), dtype));
        const auto along = with_gradient(x, weights, [&](const Tensor& t) { return f(t, d); });
        const auto turned = with_gradient(x, weights, [&](const Tensor& t) -> Result<Tensor> {
          RILLE_TRY(const auto rows, transpose(t, d, last));
          RILLE_TRY(const auto y, f(rows, last));
          return transpose(y, d, last);
        });
        INFO(name_of(dtype) << " " << to_string(shape) << (f == Along(&softmax) ? " softmax" : " log_softmax"));
        CHECK(along.value.is_contiguous());
        CHECK(worst(along.value, turned.value) < tolerance);
        CHECK(worst(along.gradient, turned.gradient) < 8 * tolerance);  // a sum of 300 weights stands in it
      }
    }
  }
}

TEST_CASE("columns have the ends of rows: infinities and NaN", "[unit][tensor]") {
  auto graph = new_graph();
  const double inf = HUGE_VAL, nan = std::nan("");
  std::vector<double> x(3 * 8, 1);
  const std::vector<double> ends[] = {{inf, 0, 0}, {-inf, 0, 0}, {-inf, -inf, -inf}, {nan, 0, 0}, {100, -100, 0}};
  for (std::size_t k = 0; k < 5; ++k)
    for (std::size_t i = 0; i < 3; ++i) x[i * 8 + k] = ends[k][i];
  const auto columns = get(from_numbers(*graph, dims({3, 8}), DType::f32, x));
  for (const Along f : {Along(&softmax), Along(&log_softmax)}) {
    const auto got = numbers(get(f(columns, 0)));
    const auto want = numbers(get(transpose(get(f(get(transpose(columns, 0, 1)), 1)), 0, 1)));
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(i);
      CHECK((got[i] == Approx(want[i]) || got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))));
    }
  }
}

TEST_CASE("rows in half types are those in f32, rounded", "[unit][tensor]") {
  auto graph = new_graph();
  for (const DType half : {DType::bf16, DType::f16}) {
    // The first is more rows than one slab has, the second has rows longer than a slab.
    for (const auto& shape : {dims({1999, 100}), dims({3, 70'000})}) {
      const auto row = dims({shape[1]});
      const auto x = get(cast(get(randn(*graph, shape)), half)), g = get(cast(get(randn(*graph, shape)), half));
      const auto w = get(cast(get(randn(*graph, row)), half)), b = get(cast(get(randn(*graph, row)), half));
      const auto wide = [](const Tensor& t) { return get(cast(t, DType::f32)); };
      const auto same = [&](const char* what, const Tensor& got, const Tensor& want) {
        INFO(name_of(half) << " " << to_string(shape) << " " << what);
        CHECK(got.dtype() == half);
        CHECK(bits(got) == bits(get(cast(want, half))));
      };
      same("softmax", get(softmax(x, 1)), get(softmax(wide(x), 1)));
      same("log_softmax", get(log_softmax(x, 1)), get(log_softmax(wide(x), 1)));
      same("layer_norm", get(layer_norm(x, w, b)), get(layer_norm(wide(x), wide(w), wide(b))));
      same("layer_norm, plain", get(layer_norm(x, {}, {})), get(layer_norm(wide(x), {}, {})));
      same("rms_norm", get(rms_norm(x, w)), get(rms_norm(wide(x), wide(w))));
      const auto slopes = with_gradient(x, g, [&](const Tensor& t) { return layer_norm(t, w, b); });
      const auto exact =
          with_gradient(wide(x), wide(g), [&](const Tensor& t) { return layer_norm(t, wide(w), wide(b)); });
      CHECK(worst(slopes.gradient, exact.gradient) < (half == DType::bf16 ? 2e-2 : 3e-3));
    }
  }
}

TEST_CASE("scatter moves half types as they are, and finds a number out of range", "[unit][tensor]") {
  auto graph = new_graph();
  const auto x = get(cast(get(zeros(*graph, dims({2, 4}), DType::f32)), DType::bf16));
  const auto from = get(cast(get(from_numbers(*graph, dims({3, 2}), DType::f32, {1, 2, 3, 4, 5, 6})), DType::bf16));
  for (const DType type : {DType::i64, DType::i32, DType::u8}) {
    const auto at = get(from_numbers(*graph, dims({2, 3}), type, {3, 0, 1, 2, 2, 0}));
    const auto turned = get(transpose(from, 0, 1));
    CHECK(numbers(get(scatter(x, 1, at, turned))) == std::vector<double>{3, 5, 0, 1, 6, 0, 4, 0});
    CHECK(numbers(get(scatter(x, 1, at, get(contiguous(turned))))) == std::vector<double>{3, 5, 0, 1, 6, 0, 4, 0});
    const auto wrong = get(from_numbers(*graph, dims({2, 3}), type, {3, 0, 1, 2, 4, 0}));
    const auto r = graph->read_blocking(get(scatter(x, 1, wrong, turned)));
    REQUIRE(!r.ok());
    CHECK(r.error().message == "scatter: index 4 at position 4; there are indices 0 to 3");
  }
}

}  // namespace rille::tensor
