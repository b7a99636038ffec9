// Element-wise operations that run as one: the same bits as one by one, whatever is between them.
#include "programs.hpp"

namespace rille::tensor {

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
