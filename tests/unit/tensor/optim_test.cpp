// The optimisers' rules against plain loops, half parameters with masters, loss scaling, and averages.
#include <cmath>
#include <limits>

#include "fixture.hpp"

namespace rille::tensor {
namespace {

// The gradient of the sum of p^3 is 3 p^2.
void cubes(const Tensor& p) { get(backward(get(sum(get(mul(get(mul(p, p)), p)))))); }

}  // namespace

TEST_CASE("adam adds the decay to the gradient", "[unit][tensor]") {
  auto g = new_graph();
  auto p = leaf(*g, dims({2}), {1, -2});
  auto opt = get(Optimizer::create({{{{"p", p}}, 0.1, 0.3, Adam{0.8, 0.9, 1e-6, false}}}));
  std::vector<double> want{1, -2}, m(2), v(2);
  for (int step = 1; step <= 4; ++step) {
    cubes(p);
    get(opt.step());
    for (int i = 0; i < 2; ++i) {
      const double grad = 3 * want[i] * want[i] + 0.3 * want[i];
      m[i] = 0.8 * m[i] + 0.2 * grad;
      v[i] = 0.9 * v[i] + 0.1 * grad * grad;
      want[i] -= 0.1 * (m[i] / (1 - std::pow(0.8, step))) / (std::sqrt(v[i] / (1 - std::pow(0.9, step))) + 1e-6);
    }
  }
  for (int i = 0; i < 2; ++i) CHECK(numbers(p)[i] == Approx(want[i]).epsilon(1e-12));
}

TEST_CASE("adam corrects each parameter by the steps that it has made itself", "[unit][tensor]") {
  auto g = new_graph();
  // The second one rests for three steps, between two that do not; the last one, of another group, for one.
  std::vector<Tensor> p;
  for (int i = 0; i < 4; ++i) p.push_back(leaf(*g, dims({1}), {1 + 0.5 * i}));
  const Adam how{0.8, 0.9, 1e-6};
  auto opt =
      get(Optimizer::create({{{{"a", p[0]}, {"b", p[1]}, {"c", p[2]}}, 0.1, 0, how}, {{{"d", p[3]}}, 0.1, 0, how}}));
  double want[4] = {1, 1.5, 2, 2.5}, m[4] = {}, v[4] = {};
  int steps[4] = {};
  for (int step = 0; step < 6; ++step) {
    for (int i = 0; i < 4; ++i) {
      if ((i == 1 && step < 3) || (i == 3 && step == 2)) continue;
      cubes(p[std::size_t(i)]);
      const double grad = 3 * want[i] * want[i];
      ++steps[i];
      m[i] = 0.8 * m[i] + 0.2 * grad;
      v[i] = 0.9 * v[i] + 0.1 * grad * grad;
      const double rise1 = 1 - std::pow(0.8, steps[i]), rise2 = 1 - std::pow(0.9, steps[i]);
      want[i] -= 0.1 * m[i] / rise1 / (std::sqrt(v[i] / rise2) + 1e-6);
    }
    get(opt.step());
    for (std::size_t i = 0; i < 4; ++i) CHECK(numbers(p[i])[0] == Approx(want[i]).epsilon(1e-12));
  }
  const auto state = [&](const std::string& name) {
    for (const auto& [known, t] : opt.state())
      if (known == name) return numbers(t)[0];
    return -1.0;
  };
  CHECK(state("step") == 6);
  CHECK(state("step.a") == 6);
  CHECK(state("step.b") == 3);
  CHECK(state("step.d") == 5);
}

TEST_CASE("lion takes the sign", "[unit][tensor]") {
  auto g = new_graph();
  auto p = leaf(*g, dims({3}), {1, -2, 0});
  auto opt = get(Optimizer::create({{{{"p", p}}, 0.01, 0.1, Lion{0.9, 0.8}}}));
  std::vector<double> want{1, -2, 0}, m(3);
  for (int step = 0; step < 5; ++step) {
    cubes(p);
    get(opt.step());
    for (int i = 0; i < 3; ++i) {
      const double grad = 3 * want[i] * want[i], u = 0.9 * m[i] + 0.1 * grad;
      want[i] = want[i] * (1 - 0.01 * 0.1) - 0.01 * ((u > 0) - (u < 0));
      m[i] = 0.8 * m[i] + 0.2 * grad;
    }
  }
  for (int i = 0; i < 3; ++i) CHECK(numbers(p)[i] == Approx(want[i]).margin(1e-14));
  CHECK(opt.state()[2].first == "exp_avg.p");
}

TEST_CASE("orthogonal brings singular values close to one, tall or wide", "[unit][tensor]") {
  auto g = new_graph();
  for (const auto& shape : {dims({4, 12}), dims({12, 4})}) {
    const auto x = get(randn(*g, shape, DType::f64));
    const auto o = get(orthogonal(x, 12, DType::f64));
    REQUIRE(o.shape() == shape);
    const bool tall = shape[0] > shape[1];
    const auto turned = get(transpose(o, 0, 1));
    const auto square = numbers(get(tall ? matmul(turned, o) : matmul(o, turned)));
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) CHECK(square[std::size_t(i * 4 + j)] == Approx(i == j ? 1.0 : 0.0).margin(0.55));
    // The sign of the matrix is kept: x and what it becomes point the same way.
    CHECK(get(g->item_blocking(get(sum(get(mul(x, o)))))) > 0);
  }
}

TEST_CASE("muon on one row is its direction, as long as the polynomial says", "[unit][tensor]") {
  auto g = new_graph();
  auto p = leaf(*g, dims({1, 2}), {3, 4});
  auto opt = get(Optimizer::create({{{{"p", p}}, 0.5, 0.1, Muon{.momentum = 0.6, .steps = 2}}}));
  std::vector<double> want{3, 4}, m(2);
  for (int step = 0; step < 3; ++step) {
    cubes(p);
    get(opt.step());
    double u[2], length = 0;
    for (int i = 0; i < 2; ++i) {
      const double grad = 3 * want[i] * want[i];
      m[i] = 0.6 * m[i] + 0.4 * grad;
      u[i] = 0.4 * grad + 0.6 * m[i];
      length += u[i] * u[i];
    }
    double s = 1;  // its one singular value, after norming
    for (int k = 0; k < 2; ++k) s = 3.4445 * s - 4.7750 * s * s * s + 2.0315 * s * s * s * s * s;
    for (int i = 0; i < 2; ++i) want[i] = want[i] * (1 - 0.5 * 0.1) - 0.5 * s * u[i] / std::sqrt(length);
  }
  for (int i = 0; i < 2; ++i) CHECK(numbers(p)[i] == Approx(want[i]).epsilon(1e-10));
  auto vector = leaf(*g, dims({2}), {1, 2});
  CHECK(Optimizer::create({{{{"v", vector}}, 0.1, 0, Muon{}}}).error().message ==
        "muon: parameter v is [2]: expected a matrix");
}

TEST_CASE("groups have rules of their own, and keep the proportion of their rates", "[unit][tensor]") {
  auto g = new_graph();
  auto a = leaf(*g, dims({1}), {1}), b = leaf(*g, dims({1}), {1});
  auto opt = get(Optimizer::create({{{{"a", a}}, 0.1, 0, Sgd{}}, {{{"b", b}}, 0.2, 0, Lion{}}}));
  get(opt.set_lr(0.01));
  cubes(a);
  cubes(b);
  get(opt.step());
  CHECK(numbers(a)[0] == Approx(1 - 0.03));
  CHECK(numbers(b)[0] == Approx(1 - 0.02));
}

TEST_CASE("half parameters follow a master in f32", "[unit][tensor]") {
  auto g = new_graph();
  for (const DType dtype : {DType::bf16, DType::f16}) {
    auto p = leaf(*g, dims({2}), {1, -2}, dtype);
    auto opt = get(Optimizer::create({{{{"p", p}}, 1e-5, 0}}));
    // Steps of 1e-5 vanish next to 1 in bf16 and f16; in the master they do not.
    for (int step = 0; step < 60; ++step) {
      cubes(p);
      get(opt.step());
    }
    REQUIRE(opt.state()[2].first == "master.p");
    const auto master = numbers(opt.state()[2].second);
    CHECK(master[0] == Approx(1 - 60e-5).epsilon(1e-5));
    CHECK(master[1] == Approx(-2 - 60e-5).epsilon(1e-5));
    CHECK(p.dtype() == dtype);
    CHECK(numbers(p) == numbers(get(cast(opt.state()[2].second, dtype))));
  }
  auto half = leaf(*g, dims({1}), {1}, DType::f16), wide = leaf(*g, dims({1}), {1}, DType::f64);
  CHECK(Optimizer::create({{{{"h", half}, {"w", wide}}}}).error().message ==
        "optimiser: parameter w: f64 among f16: make one optimizer for each type");
}

TEST_CASE("a gradient that is not finite changes the loss scale and nothing else, also in a replay", "[unit][tensor]") {
  auto g = new_graph();
  auto p = leaf(*g, dims({2, 2}), {1, 2, 3, 4}, DType::f32), q = leaf(*g, dims({1}), {1}, DType::f32);
  auto opt = get(Optimizer::create({{{{"p", p}}, 0.1, 0, Muon{.precision = DType::f32}}, {{{"q", q}}, 0.1, 0}},
                                   LossScaleOptions{.initial = 1024, .growth = 2, .backoff = 0.25, .interval = 2}));
  Compiled update(g, false);
  const auto step = [&](double factor) {
    const auto x = get(full(*g, {}, factor));
    if (get(update.begin({x}, "")) == Compiled::Next::replayed) return;
    const auto loss = get(mul(get(add(get(sum(get(mul(p, p)))), get(sum(get(mul(q, q)))))), update.arguments()[0]));
    get(backward(get(opt.scaled(loss))));
    get(opt.step());
    get(update.end({loss}));
  };
  const auto state = [&](const char* name) {
    for (const auto& [known, t] : opt.state())
      if (known == name) return numbers(t);
    FAIL(name);
    return std::vector<double>{};
  };
  const double inf = std::numeric_limits<double>::infinity();
  step(1);
  step(1);
  CHECK(state("loss_scale")[0] == 2048);  // two good ones: it grew
  step(1);
  const auto before = numbers(p);
  const auto m = state("momentum.p"), v = state("exp_avg_sq.q");
  CHECK(state("step")[0] == 3);
  step(inf);  // a replay
  CHECK(state("loss_scale")[0] == 512);
  CHECK(state("loss_scale.good")[0] == 0);
  CHECK(state("step")[0] == 3);
  CHECK(numbers(p) == before);
  CHECK(state("momentum.p") == m);
  CHECK(state("exp_avg_sq.q") == v);
  step(1);
  CHECK(state("step")[0] == 4);
  CHECK(numbers(p) != before);
}

TEST_CASE("a scaled loss trains as an unscaled one", "[unit][tensor]") {
  auto g = new_graph();
  auto a = leaf(*g, dims({2}), {1, 2}, DType::f32), b = leaf(*g, dims({2}), {1, 2}, DType::f32);
  auto plain = get(Optimizer::create({{{{"a", a}}, 0.1, 0.1}}));
  auto scaled = get(Optimizer::create({{{{"b", b}}, 0.1, 0.1}}, LossScaleOptions{}));
  for (int i = 0; i < 5; ++i) {
    cubes(a);
    get(plain.step());
    get(backward(get(scaled.scaled(get(sum(get(mul(get(mul(b, b)), b))))))));
    get(scaled.unscale());  // for clipping, before the step
    CHECK(numbers(b.grad())[0] < 100);
    get(scaled.step());
  }
  CHECK(numbers(a) == numbers(b));  // powers of two scale exactly
  cubes(b);
  CHECK(scaled.step().error().message.find("was not scaled") != std::string::npos);
  CHECK(plain.scaled(a).error().kind == ErrorKind::state);
}

TEST_CASE("averages follow, at first quickly", "[unit][tensor]") {
  auto g = new_graph();
  auto x = get(from_numbers(*g, dims({2}), DType::f64, {1, 2})), y = get(zeros(*g, dims({2}), DType::f64));
  auto steps = get(zeros(*g, {}, DType::i64));
  get(average_({y}, {x}, 0.9));
  CHECK(numbers(y)[1] == Approx(0.2));
  get(zero_(y));
  double want = 0;
  for (int i = 1; i <= 100; ++i) {
    get(average_({y}, {x}, 0.9, steps));
    const double d = std::min(0.9, (1.0 + i) / (10.0 + i));
    want = d * want + (1 - d);
    if (i == 1 || i == 5 || i == 100) CHECK(numbers(y)[0] == Approx(want).epsilon(1e-12));
  }
  CHECK_FALSE(average_({y}, {x}, 1).ok());
  CHECK_FALSE(average_({y}, {get(zeros(*g, dims({3}), DType::f64))}, 0.5).ok());
}

}  // namespace rille::tensor
