// How windows beyond 2^30 units are cut into pieces. No memory is touched: where each piece begins and ends counts.
#include <array>
#include <catch2/catch.hpp>

#include "../../support/shim_kernels.hpp"
#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {
namespace {

View view_of(DType dtype, std::initializer_list<std::int64_t> shape, std::initializer_list<std::int64_t> strides) {
  View v;
  for (const auto n : shape) v.shape.push(n);
  for (const auto n : strides) v.strides.push(n);
  v.dtype = dtype;
  v.data = reinterpret_cast<void*>(std::uintptr_t(1) << 40);
  return v;
}

// What divide() and locate() of walk.h make of a unit: the operand's place in elements, from the window's first.
template <int N>
std::int64_t place_of(const Windows<N>& w, int k, const View& v, std::uint64_t unit) {
  std::int64_t at = (static_cast<char*>(w.data[k]) - v.ptr<char>()) / std::int64_t(size_bytes(v.dtype));
  for (int d = 0; d < w.rank - 1; ++d) {
    const Divider& by = w.size[d];
    const std::uint64_t high = (std::uint64_t(unsigned(unit)) * by.multiplier) >> 32;
    const unsigned next = unsigned(high + unsigned(unit)) >> by.shift;
    at += std::int64_t(unsigned(unit) - next * by.divisor) * w.step[k][d];
    unit = next;
  }
  return at + std::int64_t(unit) * w.step[k][w.rank - 1];
}

// The place in `v` of its element number i, in the order of its shape.
std::int64_t place_in(const View& v, std::int64_t i) {
  std::int64_t at = 0;
  for (int d = v.shape.n - 1; d >= 0; i /= v.shape[d--]) at += i % v.shape[d] * v.strides[d];
  return at;
}

struct Case {
  const char* name;
  View in, out;
  int pack;
};

}  // namespace

TEST_CASE("windows beyond 2^30 units are cut where all pieces fit", "[unit][cuda]") {
  constexpr std::int64_t G = std::int64_t(1) << 30;
  const DType f = DType::f32;
  const Case cases[] = {
      {"rows of 2^31 units", view_of(f, {3, 2 * G + 6}, {0, 2}), view_of(f, {3, 2 * G + 6}, {2 * G + 6, 1}), 4},
      {"rows of 2^31 packs", view_of(f, {2, 8 * G + 8}, {0, 1}), view_of(f, {2, 8 * G + 8}, {8 * G + 8, 1}), 4},
      {"2^32 units within a place", view_of(f, {2, 3, 4 * G + 2}, {1, 0, 2}),
       view_of(f, {2, 3, 4 * G + 2}, {3 * (4 * G + 2), 4 * G + 2, 1}), 4},
      {"short rows, many of them", view_of(f, {3, 2 * G + 1, 3}, {0, 1, 7}),
       view_of(f, {3, 2 * G + 1, 3}, {3 * (2 * G + 1), 3, 1}), 4},
      {"one line with a rest", view_of(f, {9 * G + 3}, {1}), view_of(f, {9 * G + 3}, {1}), 4},
      {"small", view_of(f, {5, 7}, {0, 1}), view_of(f, {5, 7}, {7, 1}), 4}};
  test::ShimLauncher launcher;
  Call call{};
  for (const auto& c : cases) {
    INFO(c.name);
    const View* const views[2] = {&c.in, &c.out};
    std::int64_t done = 0;  // the output is contiguous: its places are the elements' numbers
    each_windows<2>(launcher, views, call, c.pack, -1, [&](const Windows<2>& w) {
      const std::int64_t each = w.packed ? c.pack : 1;
      REQUIRE(w.units <= unsigned(G));
      for (const std::uint64_t unit : {std::uint64_t(0), std::uint64_t(w.units / 3), std::uint64_t(w.units - 1)}) {
        const std::int64_t number = done + std::int64_t(unit) * each;
        CHECK(place_of(w, 1, c.out, unit) == number);
        CHECK(place_of(w, 0, c.in, unit) == place_in(c.in, number));
      }
      done += std::int64_t(w.units) * each + w.tail;
    });
    CHECK(done == c.out.count());
  }
}

TEST_CASE("what kernels count in 32 bits is refused where it is more", "[unit][cuda]") {
  constexpr std::int64_t G = std::int64_t(1) << 30;
  const DType f = DType::f32;
  const auto refused = [&](OpId op, std::vector<View> in, std::vector<View> out, Attrs attrs = {}) {
    test::ShimLauncher launcher;
    std::array<char, Call::error_bytes> said{};
    Call call{in.data(), int(in.size()), out.data(), int(out.size()), &attrs, {}, nullptr, said.data()};
    launch_of(op)(call, launcher);
    CHECK(launcher.launches == 0);
    return std::string(said.data());
  };
  Attrs one;
  for (auto& number : one.i) number = 1;
  const View line = view_of(f, {1, 1, 1, 2 * G}, {2 * G, 2 * G, 2 * G, 1});
  CHECK(refused(OpId::max_pool, {line}, {line, line}, one).find("planes of up to 2^31 pixels") != std::string::npos);
  CHECK(refused(OpId::avg_pool_grad, {line}, {line}, one).find("planes of up to 2^31 pixels") != std::string::npos);
  const View deep = view_of(f, {1, 2 * G, 1, 1}, {2 * G, 1, 1, 1}), dot = view_of(f, {1, 1, 1, 1}, {1, 1, 1, 1});
  CHECK(refused(OpId::convolution, {deep, deep}, {dot}, one).find("windows of up to 2^31 numbers") !=
        std::string::npos);
  const View flat = view_of(DType::u8, {2 * G, 512}, {0, 0}), most = view_of(DType::u8, {2 * G}, {1});
  CHECK(refused(OpId::amax, {flat}, {most}, one) ==
        "reduction: 2147483648 results are too many for one launch on a CUDA device");
  const View heads = view_of(f, {4 * G, 2, 1, 1}, {2, 1, 1, 1}), sums = view_of(f, {4 * G, 2, 1}, {2, 1, 1});
  CHECK(refused(OpId::attention, {heads, heads, heads}, {heads, sums}).find("more than 2^33 rows") !=
        std::string::npos);
  CHECK(refused(OpId::multinomial, {view_of(f, {2 * G, 2}, {2, 1})}, {view_of(DType::i64, {2 * G}, {1})}) ==
        "multinomial: 2147483648 rows; a CUDA device takes at most 2^31 - 1");
}

}  // namespace rille::kernels::cuda
