// Values that are computed again rather than kept: less memory, the same bits.
#include "fixture.hpp"

namespace rille::tensor {

TEST_CASE("recomputed activations and norms take less memory and give the same gradients", "[unit][tensor]") {
  constexpr int layers = 4, width = 32;
  auto g = new_graph();
  std::vector<Tensor> weights;
  const auto parameter = [&](const Dims& shape) {
    auto t = get(mul(get(randn(*g, shape)), 0.2)).detach();
    get(t.set_requires_grad(true));
    weights.push_back(t);
  };
  for (int i = 0; i < layers; ++i) {
    parameter(dims({width}));
    parameter(dims({width}));
    parameter(dims({4 * width, width}));
    parameter(dims({width, 4 * width}));
  }
  const auto fn = [&](const std::vector<Tensor>& in) {
    auto x = in[0];
    for (std::size_t i = 0; i < weights.size(); i += 4) {
      const auto normal = get(layer_norm(x, weights[i], weights[i + 1]));
      const auto wide = get(gelu(get(linear(normal, weights[i + 2]))));
      x = get(add(x, get(linear(wide, weights[i + 3]))));
    }
    const auto loss = get(sum(get(mul(x, x))));
    get(backward(loss));
    std::vector<Tensor> out = {loss};
    for (auto& w : weights) {
      out.push_back(w.grad());
      get(w.set_grad({}));
    }
    return out;
  };
  const auto x = get(randn(*g, dims({64, width})));
  const auto plain = fn({x});
  std::size_t arena[3];
  for (const auto level : {Recompute::none, Recompute::elementwise, Recompute::norms}) {
    Compiled c(g, false, level);
    std::vector<Tensor> out;
    for (int call = 0; call < 3; ++call)
      out = get(c.begin({x})) == Compiled::Next::replayed ? c.outputs() : get(c.end(fn(c.arguments())));
    REQUIRE(out.size() == plain.size());
    for (std::size_t i = 0; i < out.size(); ++i) CHECK(bits(out[i]) == bits(plain[i]));
    arena[std::size_t(level)] = c.info().arena_bytes;
  }
  // One activation of each layer but the last; then one norm's result of each layer, too.
  CHECK(arena[0] - arena[1] >= (layers - 2) * 64 * 4 * width * 4);
  CHECK(arena[1] - arena[2] >= (layers - 2) * 64 * width * 4);
}

TEST_CASE("what was written since is not computed again from", "[unit][tensor]") {
  auto g = new_graph();
  auto state = get(full(*g, dims({8}), 2));
  const auto fn = [&](const std::vector<Tensor>& in) {
    const auto early = get(mul(state, in[0]));  // of the state as it was
    auto x = get(sum(early));
    for (int i = 0; i < 20; ++i) x = get(sum(get(reshape(get(add(x, 1)), dims({1})))));
    get(add_(state, in[0]));
    return std::vector<Tensor>{get(sum(get(add(early, x))))};
  };
  std::vector<double> plain, compiled;
  const auto one = get(full(*g, dims({8}), 1));
  for (int i = 0; i < 4; ++i) plain.push_back(numbers(fn({one})[0])[0]);
  state = get(full(*g, dims({8}), 2));
  Compiled c(g, false, Recompute::norms);
  for (int i = 0; i < 4; ++i) {
    const auto out = get(c.begin({one})) == Compiled::Next::replayed ? c.outputs() : get(c.end(fn(c.arguments())));
    compiled.push_back(numbers(out[0])[0]);
  }
  CHECK(plain == compiled);
}

}  // namespace rille::tensor
