// Functions of f32 that are computed in f64 without libm: how near they are, and what they give at the ends. Copies
// that turn a window, and sums and extremes of half types, which take ways of their own when they are large.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"

namespace rille::kernels {
namespace {

const float inf = std::numeric_limits<float>::infinity();

Dims dims(std::initializer_list<std::int64_t> list) {
  Dims d;
  for (const auto n : list) d.push(n);
  return d;
}

template <class T>
View line(std::vector<T>& of, DType t) {
  return {of.data(), t, dims({std::int64_t(of.size())}), dims({1})};
}

void call(Kernel kernel, const std::vector<View>& in, const View& out, const Attrs& attrs = {}, RandomKey key = {}) {
  static LaneState lane;
  char error[Call::error_bytes] = {};
  Call c;
  c.in = in.data();
  c.n_in = int(in.size());
  c.out = &out;
  c.n_out = 1;
  c.attrs = &attrs;
  c.random = key;
  c.lane = &lane;
  c.error = error;
  kernel(c);
  REQUIRE(std::string(error).empty());
}

std::vector<float> of(Kernel kernel, std::vector<float> a, std::vector<float> b = {}) {
  std::vector<float> out(a.size());
  std::vector<View> in{line(a, DType::f32)};
  if (!b.empty()) in.push_back(line(b, DType::f32));
  call(kernel, in, line(out, DType::f32));
  return out;
}

bool same(float got, float want) {
  return std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want);
}

// In units of the last place of the true value.
double off(float got, double want) {
  const float near = std::fabs(float(want));
  return std::fabs(double(got) - want) / (double(std::nextafter(near, inf)) - double(near));
}

const std::vector<float> corners{
    0,  -0.0f,  0.5f,    -0.5f, 1,      -1,    1.5f,     -1.5f,     2,   -2,   3,
    -3, 1e-40f, -1e-40f, 1e30f, -1e30f, 3e38f, 16777215, -16777215, inf, -inf, std::numeric_limits<float>::quiet_NaN()};

void pairs(Kernel kernel, float (*truth)(float, float)) {
  std::vector<float> a, b;
  for (const float x : corners)
    for (const float y : corners) {
      a.push_back(x);
      b.push_back(y);
    }
  const auto got = of(kernel, a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float want = truth(a[i], b[i]);
    INFO(a[i] << " and " << b[i] << ": " << got[i] << ", not " << want);
    CHECK((same(got[i], want) || (std::isfinite(want) && want != 0 && off(got[i], want) < 1.01)));
  }
}

}  // namespace

TEST_CASE("pow and the arcs are the nearest number, or the one beside it", "[unit][kernels]") {
  std::vector<float> x, y, near;
  for (int i = 0; i < 20000; ++i) {
    x.push_back(std::exp(float(i % 199 - 99) / 10));
    y.push_back(float(i % 101 - 50) / 7);
    near.push_back(-1 + float(i) / 9999.5f);
  }
  const auto p = of(&pow, x, y), t = of(&atan2, y, x), s = of(&asin, near), c = of(&acos, near), a = of(&atan, y);
  double worst[5] = {};
  const auto keep = [&](int k, double d) { worst[k] = std::max(worst[k], d); };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double power = std::pow(double(x[i]), double(y[i]));
    if (power > 1e-37 && power < 1e38) keep(0, off(p[i], power));
    keep(1, off(t[i], std::atan2(double(y[i]), double(x[i]))));
    keep(2, off(s[i], std::asin(double(near[i]))));
    keep(3, off(c[i], std::acos(double(near[i]))));
    keep(4, off(a[i], std::atan(double(y[i]))));
  }
  for (int k = 0; k < 5; ++k) {
    INFO(k);
    CHECK(worst[k] < 0.52);
  }
}

TEST_CASE("pow and atan2 at the ends are C's", "[unit][kernels]") {
  pairs(&pow, [](float a, float b) { return b == 2 ? a * a : std::pow(a, b); });
  pairs(&atan2, [](float a, float b) { return std::atan2(a, b); });
  const auto s = of(&asin, corners), c = of(&acos, corners), t = of(&atan, corners);
  for (std::size_t i = 0; i < corners.size(); ++i) {
    INFO(corners[i]);
    CHECK((same(s[i], std::asin(corners[i])) || off(s[i], std::asin(corners[i])) < 1.01));
    CHECK((same(c[i], std::acos(corners[i])) || off(c[i], std::acos(corners[i])) < 1.01));
    CHECK((same(t[i], std::atan(corners[i])) || off(t[i], std::atan(corners[i])) < 1.01));
  }
}

TEST_CASE("pow with one number is pow of as many", "[unit][kernels]") {
  std::vector<float> x, number(1500), out(1500);
  for (int i = 0; i < 1500; ++i) x.push_back(corners[std::size_t(i) % corners.size()]);
  for (const float n : corners) {
    std::fill(number.begin(), number.end(), n);
    View one = line(number, DType::f32);
    one.strides[0] = 0;
    for (const bool left : {false, true}) {
      const View many = line(x, DType::f32);
      call(&pow, {left ? one : many, left ? many : one}, line(out, DType::f32));
      const auto want = left ? of(&pow, number, x) : of(&pow, x, number);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < x.size(); ++i) wrong += !same(out[i], want[i]);
      INFO(n << " " << left);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("normal random numbers in f32 are the f64 numbers, rounded", "[unit][kernels]") {
  std::vector<float> narrow(1003);
  std::vector<double> wide(1003);
  const RandomKey key{42, 7, 3};
  call(&normal, {}, line(narrow, DType::f32), {}, key);
  call(&normal, {}, line(wide, DType::f64), {}, key);
  double worst = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) worst = std::max(worst, off(narrow[i], wide[i]));
  CHECK(worst < 0.52);
}

TEMPLATE_TEST_CASE("a copy that turns its window moves each element", "[unit][kernels]", std::uint8_t, std::uint16_t,
                   std::int32_t, std::int64_t) {
  const DType t = sizeof(TestType) == 8   ? DType::i64
                  : sizeof(TestType) == 4 ? DType::i32
                  : sizeof(TestType) == 2 ? DType::bf16
                                          : DType::u8;
  // in [3, 37, 2, 70] lies as [2, 70, 3, 37]: its second dimension runs along memory.
  const std::int64_t a = 3, b = 37, d = 2, e = 70;
  std::vector<TestType> from(std::size_t(a * b * d * e)), to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = TestType(i * 2654435761u >> 7);
  const View in{from.data(), t, dims({a, b, d, e}), dims({b, 1, e * a * b, a * b})};
  const View out{to.data(), t, dims({a, b, d, e}), dims({b * d * e, d * e, e, 1})};
  call(&copy, {in}, out);
  std::size_t at = 0, wrong = 0;
  for (std::int64_t i = 0; i < a; ++i)
    for (std::int64_t j = 0; j < b; ++j)
      for (std::int64_t k = 0; k < d; ++k)
        for (std::int64_t m = 0; m < e; ++m)
          wrong += to[at++] != from[std::size_t(i * b + j + k * e * a * b + m * a * b)];
  CHECK(wrong == 0);
}

TEST_CASE("reductions of half numbers equal reductions of the same numbers in f32", "[unit][kernels]") {
  const std::int64_t rows = 70, n = 9001;  // more than a slab, and no whole blocks
  std::vector<float> wide(std::size_t(rows * n));
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = float(int(i * 2654435761u >> 20 & 255) - 100) / 64;
  std::vector<std::uint16_t> half(wide.size());
  call(&copy, {line(wide, DType::f32)}, line(half, DType::bf16));  // exactly: eight bits each
  const auto shape = dims({rows, n}), turned = dims({n, rows});
  const auto reduced = [&](Kernel kernel, DType t, bool across, int over, DType result, double factor) {
    void* data = t == DType::f32 ? static_cast<void*>(wide.data()) : half.data();
    const View in{data, t, across ? turned : shape, across ? dims({1, n}) : dims({n, 1})};
    const std::int64_t count = over == 2 ? 1 : across ? n : rows;
    std::vector<double> room(std::size_t(count), -1);
    Dims at, step;
    if (over == 1) {
      at.push(count);
      step.push(1);
    }
    Attrs attrs;
    attrs.i[0] = over;
    attrs.f[0] = factor;
    call(kernel, {in}, {room.data(), result, at, step}, attrs);
    if (result == DType::i64) {
      std::vector<std::int64_t> places(static_cast<std::size_t>(count));
      std::memcpy(places.data(), room.data(), places.size() * 8);
      return std::vector<float>(places.begin(), places.end());
    }
    std::vector<float> values(static_cast<std::size_t>(count)), rounded(values.size());
    if (result == DType::f32) std::memcpy(values.data(), room.data(), values.size() * 4);
    std::vector<std::uint16_t> as_half(values.size());
    if (result == DType::f32) call(&copy, {line(values, DType::f32)}, line(as_half, DType::bf16));
    else std::memcpy(as_half.data(), room.data(), as_half.size() * 2);
    call(&copy, {line(as_half, DType::bf16)}, line(rounded, DType::f32));
    return rounded;
  };
  for (const bool across : {false, true})
    for (const int over : {1, 2})
      for (Kernel kernel : {Kernel(&sum), Kernel(&amax), Kernel(&amin)}) {
        INFO(across << " " << over);
        const double factor = kernel == Kernel(&sum) ? 0.25 : 0;
        CHECK(reduced(kernel, DType::bf16, across, over, DType::bf16, factor) ==
              reduced(kernel, DType::f32, across, over, DType::f32, factor));
      }
  for (Kernel kernel : {Kernel(&argmax), Kernel(&argmin)})
    CHECK(reduced(kernel, DType::bf16, false, 1, DType::i64, 0) ==
          reduced(kernel, DType::f32, false, 1, DType::i64, 0));
}

}  // namespace rille::kernels
