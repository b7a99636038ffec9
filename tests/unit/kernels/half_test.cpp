// f16 and bf16: every bit pattern to f32 and back, rounding, the ends of the range; and casts between all types.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/kernels.hpp"

namespace rille::kernels {
namespace {

template <class To, class From>
std::vector<To> cast(DType to, DType from, std::vector<From> x) {
  std::vector<To> y(x.size());
  Dims n, one;
  n.push(std::int64_t(x.size()));
  one.push(1);
  const View in{x.data(), from, n, one}, out{y.data(), to, n, one};
  const Attrs attrs;
  Call call;
  call.in = &in;
  call.n_in = 1;
  call.out = &out;
  call.n_out = 1;
  call.attrs = &attrs;
  copy(call);
  return y;
}

std::vector<std::uint16_t> all_patterns() {
  std::vector<std::uint16_t> bits;
  for (int i = 0; i < 65536; ++i) bits.push_back(std::uint16_t(i));
  return bits;
}

double value_of_f16(int bits) {
  const int e = bits >> 10 & 31, f = bits & 1023;
  const double size = e == 31 ? (f ? NAN : INFINITY) : e == 0 ? std::ldexp(f, -24) : std::ldexp(1024 + f, e - 25);
  return bits & 0x8000 ? -size : size;
}

}  // namespace

TEST_CASE("every f16 and bf16 is read right and written back", "[unit][kernels]") {
  const auto bits = all_patterns();
  for (const DType t : {DType::f16, DType::bf16}) {
    const auto wide = cast<float>(DType::f32, t, bits);
    const auto back = cast<std::uint16_t>(t, DType::f32, wide);
    for (int i = 0; i < 65536; ++i) {
      const double want = t == DType::f16 ? value_of_f16(i) : double(wide[i]);
      if (std::isnan(want)) {
        REQUIRE(std::isnan(wide[i]));
        REQUIRE(std::isnan(cast<float>(DType::f32, t, std::vector<std::uint16_t>{back[i]})[0]));
      } else if (double(wide[i]) != want || back[i] != bits[i]) {
        FAIL(name_of(t) << " " << i << ": " << wide[i] << ", back " << back[i]);
      }
    }
  }
  const auto ends = cast<float>(DType::f32, DType::bf16, std::vector<std::uint16_t>{0x3f80, 0xc000, 0x7f80, 0x0001});
  CHECK(ends == std::vector<float>{1, -2, INFINITY, std::ldexp(1.0f, -133)});
}

TEST_CASE("rounding is to the nearest, halves to even, and overflows to infinity", "[unit][kernels]") {
  // Between each two neighbours: a little above the lower, the middle, a little below the upper.
  for (int i = 0; i < 0x7bff; ++i) {
    const double low = value_of_f16(i), high = value_of_f16(i + 1), middle = (low + high) / 2;
    const auto got = cast<std::uint16_t>(
        DType::f16, DType::f32,
        std::vector<float>{std::nextafter(float(middle), 0.0f), float(middle), std::nextafter(float(middle), 1e9f)});
    if (got[0] != i || got[1] != (i & 1 ? i + 1 : i) || got[2] != i + 1) FAIL(i << ": " << got[0] << " " << got[1]);
  }
  const auto ends =
      cast<std::uint16_t>(DType::f16, DType::f32, std::vector<float>{65519, 65520, 1e30f, -INFINITY, 1e-8f});
  CHECK(ends == std::vector<std::uint16_t>{0x7bff, 0x7c00, 0x7c00, 0xfc00, 0});
  const auto b =
      cast<std::uint16_t>(DType::bf16, DType::f32, std::vector<float>{1.00390625f, 1.01171875f, -1.0039064f, 3.4e38f});
  CHECK(b == std::vector<std::uint16_t>{0x3f80, 0x3f82, 0xbf81, 0x7f80});
}

TEST_CASE("casts between all types keep small whole numbers", "[unit][kernels]") {
  const std::vector<double> start{0, 1, 2, 100};
  for (int i = 0; i <= int(DType::f64); ++i) {
    for (int j = 0; j <= int(DType::f64); ++j) {
      const DType a = DType(i), b = DType(j);
      const auto x = cast<std::uint64_t>(a, DType::f64, start);  // eight bytes each are enough for any type
      const auto y = cast<std::uint64_t>(b, a, x);
      const auto z = cast<double>(DType::f64, b, y);
      const bool truth = a == DType::boolean || b == DType::boolean;
      INFO(name_of(a) << " to " << name_of(b));
      CHECK(z == (truth ? std::vector<double>{0, 1, 1, 1} : start));
    }
  }
  CHECK(cast<std::int8_t>(DType::i8, DType::f32, std::vector<float>{-1.9f, 1.9f}) == std::vector<std::int8_t>{-1, 1});
  CHECK(cast<float>(DType::f32, DType::i8, std::vector<std::int8_t>{-128, 127}) == std::vector<float>{-128, 127});
}

}  // namespace rille::kernels
