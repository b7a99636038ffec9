// A plan's groups on a CUDA device: one generated kernel, compiled by NVRTC (here the stand-in's, for the CPU), with
// the bits of the operations one by one. And the same bits where it cannot be compiled.
#include <cstdlib>

#include "../tensor/every_function.hpp"
#include "../tensor/programs.hpp"
#include "standin.hpp"

namespace rille::tensor {
namespace {

using test::Standin;
using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

int groups_in(const Compiled& c) {
  int n = 0;
  for (const auto& row : c.info().costs) n += row.name == "fused" ? int(row.calls) : 0;
  return n;
}

// How many groups there were.
int same_compiled(const std::shared_ptr<Graph>& g, const std::vector<Tensor>& in, const Function& fn) {
  const auto plain = fn(in);
  Compiled c(g);
  const auto out = replayed(c, in, fn);
  REQUIRE(out.size() == plain.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    INFO("result " << i << " of " << out.size() << ", " << name_of(out[i].dtype()));
    REQUIRE(same_bits(out[i], plain[i]));
  }
  CHECK(c.info().one_by_one == "");
  return groups_in(c);
}

constexpr DType floats[] = {DType::f32, DType::bf16, DType::f16, DType::f64};

}  // namespace

TEST_CASE("groups on a CUDA device have the bits of their operations one by one", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  int joined = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const DType dtype = floats[seed % 4];
    INFO("seed " << seed);
    g->manual_seed(seed);
    const std::vector<Tensor> in = {get(randn(*g, dims({6, 5, 4}), dtype)), get(randn(*g, dims({30, 4}), dtype)),
                                    get(permute(get(randn(*g, dims({4, 6, 5}), dtype)), dims({1, 2, 0})))};
    joined += same_compiled(
        g, in, [&](const std::vector<Tensor>& x) { return Program(*g, seed, dtype, x).run(4 + int(seed % 24)); });
  }
  CHECK(joined > 12);
  CHECK(std::string(standin.report().wrong) == "");
}

TEST_CASE("every element-wise operation and its gradient may stand in a CUDA group", "[cuda][long]") {
  const Standin standin;
  const auto g = standin.graph();
  std::vector<DType> dtypes{DType::f32};
  if (std::getenv("RILLE_LONG")) dtypes.insert(dtypes.end(), {DType::f16, DType::f64});
  for (const DType dtype : dtypes) {
    const auto x = get(add(get(mul(get(rand(*g, dims({37}), dtype)), 1.8)), -0.9));
    auto leaf = get(full(*g, dims({37}), 0.0, dtype));
    get(leaf.set_requires_grad(true));
    CHECK(same_compiled(g, {x}, [&](const std::vector<Tensor>& in) { return with_gradients(in[0], leaf); }) > 4);
  }
}

TEST_CASE("CUDA groups of all sizes, with operands that repeat and results that are kept", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& shape : {dims({1}), dims({3}), dims({8}), dims({4099}), dims({3, 1000}), dims({5, 7, 6})}) {
      INFO(to_string(shape));
      const auto x = get(randn(*g, shape, dtype)), bias = get(randn(*g, dims({shape[shape.n - 1]}), dtype));
      Dims column = shape;
      column[shape.n - 1] = 1;
      const auto scale = get(randn(*g, column, dtype));
      CHECK(same_compiled(g, {x, bias, scale}, [](const std::vector<Tensor>& in) {
              const auto kept = get(add(in[0], in[1]));
              const auto y = get(mul(get(gelu(kept)), in[2]));
              return std::vector<Tensor>{kept, get(sub(y, 0.5)), get(gt(y, kept))};
            }) == 1);
    }
  }
}

TEST_CASE("a CUDA group that cannot be compiled runs one by one, and the plan says why", "[cuda]") {
  const char* const was = std::getenv("RILLE_CXX");
  const std::string before = was ? was : "";
  ::setenv("RILLE_CXX", "/bin/false", 1);
  {
    const Standin standin;
    const auto g = standin.graph();
    const auto x = get(randn(*g, dims({13, 21}))), bias = get(randn(*g, dims({21})));
    const Function fn = [](const std::vector<Tensor>& in) {
      const auto h = get(add(in[0], in[1]));
      return std::vector<Tensor>{get(mul(get(tanh(get(rsub(h, 1)))), h)), get(cast(get(gelu(h)), DType::bf16))};
    };
    const auto plain = fn({x, bias});
    Compiled c(g);
    const auto out = replayed(c, {x, bias}, fn);
    for (std::size_t i = 0; i < out.size(); ++i) CHECK(same_bits(out[i], plain[i]));
    CHECK(groups_in(c) == 1);
    CHECK(c.info().one_by_one.find("rille_group") != std::string::npos);
    Compiled next(g);  // no use in trying again
    CHECK(same_bits(replayed(next, {x, bias}, fn)[0], plain[0]));
    CHECK(groups_in(next) == 0);
  }
  before.empty() ? ::unsetenv("RILLE_CXX") : ::setenv("RILLE_CXX", before.c_str(), 1);
}

}  // namespace rille::tensor
