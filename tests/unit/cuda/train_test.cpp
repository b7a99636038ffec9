// A small training step on the device: the compiled step's losses are the CPU's, the same in every order and each time,
// and they change with the random key, which no captured number may hold.
#include <cmath>

#include "standin.hpp"

namespace rille::tensor {
namespace {

using test::Standin;
using test::standin::Options;

// Numbers that every device has the same, without drawing them.
Tensor weights(Graph& g, std::initializer_list<std::int64_t> sizes, int seed, double size = 0.3) {
  const auto shape = dims(sizes);
  std::vector<double> v(std::size_t(shape.count()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = size * std::sin(double(i * 37 + std::size_t(seed) * 101));
  return get(from_numbers(g, shape, DType::f32, v));
}

struct Model {
  Tensor w1, b1, w2, b2;
  explicit Model(Graph& g)
      : w1(weights(g, {16, 12}, 1)), b1(weights(g, {16}, 2)), w2(weights(g, {4, 16}, 3)), b2(weights(g, {4}, 4)) {
    for (Tensor* t : {&w1, &b1, &w2, &b2}) get(t->set_requires_grad(true));
  }
  Tensor loss(const Tensor& x, const Tensor& y, double drop) const {
    const auto hidden = get(gelu(get(linear(x, w1, b1))));
    return get(cross_entropy(get(linear(get(dropout(hidden, drop)), w2, b2)), y));
  }
};

std::vector<double> losses(const std::shared_ptr<Graph>& g, double drop = 0.25, int steps = 7) {
  Model model(*g);
  auto opt =
      get(Optimizer::create({{{{"w1", model.w1}, {"b1", model.b1}, {"w2", model.w2}, {"b2", model.b2}}, 0.05, 0.01}}));
  Compiled step(g);
  std::vector<Tensor> each;
  for (int i = 0; i < steps; ++i) {
    const auto x = weights(*g, {8, 12}, 10 + i, 1);
    std::vector<double> labels;
    for (int k = 0; k < 8; ++k) labels.push_back((k * 3 + i) % 4);
    const auto y = get(from_numbers(*g, dims({8}), DType::i64, labels));
    if (get(step.begin({x, y})) == Compiled::Next::call) {
      const auto loss = model.loss(step.arguments()[0], step.arguments()[1], drop);
      get(backward(loss));
      get(opt.step());
      each.push_back(get(step.end({loss.detach()}))[0]);
    } else {
      each.push_back(step.outputs()[0]);
    }
    if (i == 3) get(opt.set_lr(0.01));  // a 0-d tensor: the captured step sees it
  }
  std::vector<double> out;
  for (const auto& t : each) out.push_back(get(g->item_blocking(t)));
  return out;
}

TEST_CASE("a compiled training step on a CUDA device has the CPU's losses", "[cuda]") {
  const auto expected = losses(new_graph());
  const Standin standin;
  const auto got = losses(standin.graph());
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-4));
  CHECK(standin.report().graph_launches == 5);
  CHECK(std::string(standin.report().wrong) == "");
}

TEST_CASE("a training step is the same to the bit in every order of the streams", "[cuda]") {
  std::vector<double> first;
  for (int seed = 1; seed <= 6; ++seed) {
    Options o;
    o.seed = std::uint64_t(seed);
    const Standin standin(o);
    const auto now = losses(standin.graph());
    if (first.empty()) first = now;
    CHECK(now == first);
  }
}

TEST_CASE("a random key that is not brought up to date is seen", "[cuda]") {
  std::vector<double> good, stale;
  {
    const Standin standin;
    good = losses(standin.graph(), 0.5);
  }
  Options o;
  o.no_numbers = true;
  const Standin standin(o);
  stale = losses(standin.graph(), 0.5);
  CHECK(good != stale);
}

TEST_CASE("what is drawn in a replay is what the CPU draws", "[cuda]") {
  const auto drawn = [](const std::shared_ptr<Graph>& g) {
    std::vector<std::vector<std::byte>> out;
    Compiled draw(g);
    for (int i = 0; i < 5; ++i) {
      if (get(draw.begin({})) == Compiled::Next::call) {
        out.push_back(bits(get(draw.end({get(rand(*g, dims({40})))}))[0]));
      } else {
        out.push_back(bits(draw.outputs()[0]));
      }
    }
    out.push_back(bits(get(rand(*g, dims({7})))));
    return out;
  };
  const auto expected = drawn(new_graph());
  const Standin standin;
  CHECK(drawn(standin.graph()) == expected);
}

}  // namespace
}  // namespace rille::tensor
