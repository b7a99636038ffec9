// The kernels' own exp, tanh, sigmoid and gelu in f32 against libm in f64, over the whole range, and every build of the
// kernel files that this processor can run against the one that it does run.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernels.hpp"

namespace rille::kernels {
namespace {

std::vector<float> run(Kernel kernel, std::vector<float> x) {
  std::vector<float> y(x.size());
  Dims n, one;
  n.push(std::int64_t(x.size()));
  one.push(1);
  const View in{x.data(), DType::f32, n, one}, out{y.data(), DType::f32, n, one};
  const Attrs attrs;
  Call call;
  call.in = &in;
  call.n_in = 1;
  call.out = &out;
  call.n_out = 1;
  call.attrs = &attrs;
  kernel(call);
  return y;
}

std::vector<float> sweep(float low, float high) {
  std::vector<float> x;
  for (int i = 0; i <= 20000; ++i) x.push_back(low + (high - low) * float(i) / 20000);
  return x;
}

// The largest error in units of the last place of the true value.
template <class F>
double worst_ulp(Kernel kernel, const std::vector<float>& x, F truth) {
  const auto y = run(kernel, x);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = truth(double(x[i]));
    const float near = float(want);
    const double ulp =
        double(std::nextafter(std::fabs(near), std::numeric_limits<float>::infinity())) - std::fabs(double(near));
    worst = std::max(worst, std::fabs(double(y[i]) - want) / ulp);
  }
  return worst;
}

}  // namespace

TEST_CASE("exp and tanh are right to two units in the last place", "[unit][kernels]") {
  CHECK(worst_ulp(&exp, sweep(-87, 88.5f), [](double x) { return std::exp(x); }) < 2);
  CHECK(worst_ulp(&exp, sweep(-1, 1), [](double x) { return std::exp(x); }) < 2);
  CHECK(worst_ulp(&tanh, sweep(-10, 10), [](double x) { return std::tanh(x); }) < 2);
  CHECK(worst_ulp(&tanh, sweep(-0.01f, 0.01f), [](double x) { return std::tanh(x); }) < 2);
  CHECK(worst_ulp(&sigmoid, sweep(-20, 20), [](double x) { return 1 / (1 + std::exp(-x)); }) < 4);
}

TEST_CASE("log, sin, cos and erf are right to a few units", "[unit][kernels]") {
  CHECK(worst_ulp(&log, sweep(1e-3f, 100), [](double x) { return std::log(x); }) < 2);
  CHECK(worst_ulp(&log, sweep(0.5f, 2), [](double x) { return std::log(x); }) < 3);
  CHECK(worst_ulp(&erf, sweep(-5, 5), [](double x) { return std::erf(x); }) < 4);
  CHECK(worst_ulp(&log1p, sweep(-0.9f, 4), [](double x) { return std::log1p(x); }) < 4);
  CHECK(worst_ulp(&log1p, sweep(-1e-4f, 1e-4f), [](double x) { return std::log1p(x); }) < 3);
  CHECK(worst_ulp(&expm1, sweep(-20, 20), [](double x) { return std::expm1(x); }) < 5);
  CHECK(worst_ulp(&expm1, sweep(-1e-4f, 1e-4f), [](double x) { return std::expm1(x); }) < 3);
  CHECK(worst_ulp(&sinh, sweep(-89, 89), [](double x) { return std::sinh(x); }) < 50);  // e^89 loses what 89 does
  CHECK(worst_ulp(&sinh, sweep(-2, 2), [](double x) { return std::sinh(x); }) < 5);
  CHECK(worst_ulp(&cosh, sweep(-2, 2), [](double x) { return std::cosh(x); }) < 4);
  CHECK(worst_ulp(&tan, sweep(-1.5f, 1.5f), [](double x) { return std::tan(x); }) < 5);
  const auto near = [](Kernel kernel, float low, float high, double (*truth)(double)) {
    const auto x = sweep(low, high), y = run(kernel, x);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::fabs(double(y[i]) - truth(double(x[i]))));
    return worst;
  };
  for (const float range : {4.0f, 1000.0f, 9e7f, 1e20f}) {
    INFO(range);
    CHECK(near(&sin, -range, range, [](double x) { return std::sin(x); }) < 1.2e-7);
    CHECK(near(&cos, -range, range, [](double x) { return std::cos(x); }) < 1.2e-7);
  }
  const float inf = std::numeric_limits<float>::infinity();
  const auto l = run(&log, {0, -0.0f, inf, -1, 1, 1e-40f});
  CHECK(l[0] == -inf);
  CHECK(l[1] == -inf);
  CHECK(l[2] == inf);
  CHECK(std::isnan(l[3]));
  CHECK(l[4] == 0);
  const auto m = run(&expm1, {-inf, -100, 0, 100, inf}), p = run(&log1p, {-1, -2, 0, inf, 1e-30f});
  CHECK(m == std::vector<float>{-1, -1, 0, inf, inf});
  CHECK(p[0] == -inf);
  CHECK(std::isnan(p[1]));
  CHECK(p[2] == 0);
  CHECK(p[3] == inf);
  CHECK(p[4] == 1e-30f);
  CHECK(l[5] == Approx(std::log(1e-40)).epsilon(1e-5));
}

TEST_CASE("exp, tanh, log and erf at the ends of the range", "[unit][kernels]") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto e = run(&exp, {-inf, -1000, 0, 88.73f, 1000, inf, nan});
  CHECK(e[0] == 0);
  CHECK(e[1] == 0);
  CHECK(e[2] == 1);
  CHECK(e[3] == inf);
  CHECK(e[4] == inf);
  CHECK(e[5] == inf);
  CHECK(std::isnan(e[6]));
  const auto t = run(&tanh, {-inf, -50, 0, 50, inf, nan});
  CHECK(t[0] == -1);
  CHECK(t[1] == -1);
  CHECK(t[2] == 0);
  CHECK(t[4] == 1);
  CHECK(std::isnan(t[5]));
  CHECK(run(&gelu, {-100, 0, 100}) == std::vector<float>{0, 0, 100});
}

TEST_CASE("every build of a kernel agrees", "[unit][kernels]") {
  const auto x = sweep(-5, 5);
  const auto agree = [&](Kernel a, Kernel b) {
    const auto p = run(a, x), q = run(b, x);
    for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(p[i] == Approx(q[i]).epsilon(1e-6).margin(1e-7));
  };
  agree(&gelu, &v1::gelu);
  agree(&exp, &v1::exp);
#ifndef RILLE_WITHOUT_V3
  if (isa_level() >= 3) agree(&gelu, &v3::gelu);
#endif
}

}  // namespace rille::kernels
