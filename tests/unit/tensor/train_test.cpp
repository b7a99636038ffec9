// Gradients at work: rules of use, optimisers against plain loops, and training that repeats bit for bit.
#include <cmath>

#include "fixture.hpp"
#include "gpt.hpp"
#include "runtime/compute/tensor/owner.hpp"

namespace rille::tensor {
namespace {}  // namespace

TEST_CASE("backward adds into .grad of leaves only", "[unit][tensor]") {
  auto g = new_graph();
  auto x = leaf(*g, dims({2}), {1, 2});
  auto y = get(mul(x, x));
  get(backward(get(sum(y))));
  CHECK(numbers(x.grad()) == std::vector<double>{2, 4});
  CHECK_FALSE(y.grad());
  get(backward(get(sum(get(mul(x, 3))))));
  CHECK(numbers(x.grad()) == std::vector<double>{5, 7});
  get(x.set_grad({}));
  CHECK_FALSE(x.grad());
}

TEST_CASE("one gradient reaching two leaves is two gradients", "[unit][tensor]") {
  auto g = new_graph();
  auto a = leaf(*g, dims({2}), {1, 1}), b = leaf(*g, dims({2}), {1, 1});
  get(backward(get(sum(get(mul(get(add(a, b)), 3))))));
  auto grad = a.grad();
  get(zero_(grad));
  CHECK(numbers(a.grad()) == std::vector<double>{0, 0});
  CHECK(numbers(b.grad()) == std::vector<double>{3, 3});
}

TEST_CASE("rules of backward", "[unit][tensor]") {
  auto g = new_graph();
  auto x = leaf(*g, dims({2}), {1, 2});
  const auto kind = [](const Result<void>& r) {
    REQUIRE_FALSE(r.ok());
    return r.error().kind;
  };
  CHECK(kind(backward(get(mul(x, 2)))) == ErrorKind::invalid);
  CHECK(kind(backward(get(sum(x.detach())))) == ErrorKind::state);
  const auto loss = get(sum(get(exp(x))));
  get(backward(loss));
  CHECK(kind(backward(loss)) == ErrorKind::state);
  auto y = get(clone(x.detach()));
  const auto later = get(sum(get(mul(x, y))));
  get(fill_(y, 9));
  CHECK(kind(backward(later)) == ErrorKind::state);
  CHECK(kind(fill_(x, 0)) == ErrorKind::state);
  {
    NoGrad guard(*g);
    get(fill_(x, 0));
    CHECK_FALSE(get(mul(x, 2)).requires_grad());
  }
  CHECK(kind(get(zeros(*g, dims({1}), DType::i64)).set_requires_grad(true)) == ErrorKind::state);
}

TEST_CASE("the gradient of dropout passes where the value passed", "[unit][tensor]") {
  auto g = new_graph();
  auto x = leaf(*g, dims({1000}), std::vector<double>(1000, 1));
  const auto y = get(dropout(x, 0.25));
  get(backward(get(sum(y))));
  CHECK(numbers(y) == numbers(x.grad()));
  CHECK(get(dropout(x, 0.25, false)).is(x));
}

TEST_CASE("adamw, against the formula", "[unit][tensor]") {
  auto g = new_graph();
  auto p = leaf(*g, dims({3}), {1, -2, 0.5});
  auto still = leaf(*g, dims({1}), {4});  // never has a gradient
  auto opt = get(Optimizer::create({{{{"p", p}, {"still", still}}, 0.1, 0.01}}));
  std::vector<double> want{1, -2, 0.5}, m(3), v(3);
  for (int step = 1; step <= 4; ++step) {
    const double lr = step < 3 ? 0.1 : 0.05;
    if (step == 3) get(opt.set_lr(0.05));
    get(backward(get(sum(get(mul(get(mul(p, p)), p))))));
    get(opt.step());
    CHECK_FALSE(p.grad());
    for (int i = 0; i < 3; ++i) {
      const double grad = 3 * want[i] * want[i];
      m[i] = 0.9 * m[i] + 0.1 * grad;
      v[i] = 0.999 * v[i] + 0.001 * grad * grad;
      want[i] *= 1 - lr * 0.01;
      want[i] -= lr * (m[i] / (1 - std::pow(0.9, step))) / (std::sqrt(v[i] / (1 - std::pow(0.999, step))) + 1e-8);
    }
  }
  const auto got = numbers(p);
  for (int i = 0; i < 3; ++i) CHECK(got[i] == Approx(want[i]).epsilon(1e-12));
  CHECK(numbers(still) == std::vector<double>{4});
  std::vector<std::string> names;
  for (const auto& [name, t] : opt.state()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"step", "lr.0", "step.p", "exp_avg.p", "exp_avg_sq.p", "step.still",
                                          "exp_avg.still", "exp_avg_sq.still"});
  CHECK(get(g->item_blocking(opt.state()[0].second)) == 4);
}

TEST_CASE("sgd with momentum, nesterov and decay, against the formula", "[unit][tensor]") {
  auto g = new_graph();
  for (const bool nesterov : {false, true}) {
    auto p = leaf(*g, dims({1}), {1});
    auto opt = get(Optimizer::create({{{{"p", p}}, 0.1, 0.2, Sgd{0.9, nesterov}}}));
    double want = 1, m = 0;
    for (int i = 0; i < 3; ++i) {
      get(backward(get(sum(get(mul(p, p))))));
      get(opt.step());
      const double d = 2 * want + 0.2 * want;
      m = 0.9 * m + d;
      want -= 0.1 * (nesterov ? d + 0.9 * m : m);
    }
    CHECK(numbers(p)[0] == Approx(want).epsilon(1e-12));
  }
}

TEST_CASE("clip_grad_norm", "[unit][tensor]") {
  auto g = new_graph();
  auto a = leaf(*g, dims({2}), {3, 0}), b = leaf(*g, dims({1}), {4});
  get(backward(get(add(get(sum(get(mul(get(mul(a, a)), 0.5)))), get(sum(get(mul(get(mul(b, b)), 0.5))))))));
  CHECK(get(g->item_blocking(get(clip_grad_norm({a, b}, 1)))) == Approx(5));
  CHECK(numbers(a.grad())[0] == Approx(0.6).epsilon(1e-6));
  CHECK(numbers(b.grad())[0] == Approx(0.8).epsilon(1e-6));
  CHECK(get(g->item_blocking(get(clip_grad_norm({a, b}, 10)))) == Approx(1).epsilon(1e-6));
  CHECK(numbers(a.grad())[0] == Approx(0.6).epsilon(1e-6));
}

TEST_CASE("optimisers refuse what they cannot update", "[unit][tensor]") {
  auto g = new_graph();
  auto p = leaf(*g, dims({1}), {1});
  CHECK_FALSE(Optimizer::create({}).ok());
  CHECK(Optimizer::create({{{{"p", p}, {"q", p}}}}).error().message == "optimiser: parameter q: given twice");
  CHECK_FALSE(Optimizer::create({{{{"p", p.detach()}}}}).ok());
  CHECK_FALSE(Optimizer::create({{{{"p", p}}, 0.1, 0, Sgd{0, true}}}).ok());
}

namespace {

constexpr GptConfig tiny{2, 2, 32, 16, 64};

struct Training {
  std::shared_ptr<Graph> graph;
  Gpt model;
  Optimizer opt;
  std::unique_ptr<Compiled> update;
  Tensor data;

  static Training start(bool compiled) {
    auto g = new_graph();
    auto model = get(Gpt::make(*g, tiny));
    ParameterGroup group{model.parameters, 1e-2, 0.1};
    auto opt = get(Optimizer::create({group}));
    auto data = get(randint(*g, 0, 8, dims({4, 17}), DType::u8));
    return {g, std::move(model), std::move(opt), compiled ? std::make_unique<Compiled>(g) : nullptr, data};
  }

  Tensor body(const Tensor& x, const Tensor& y) {
    const auto noisy = get(dropout(get(model.forward(x)), 0.1));
    const auto loss = get(cross_entropy(noisy, y));
    get(backward(loss));
    std::vector<Tensor> all;
    for (auto& [name, p] : model.parameters) all.push_back(p);
    get(clip_grad_norm(all, 1));
    get(opt.step());
    return loss;
  }

  Tensor step() {
    const auto x = get(contiguous(get(narrow(data, 1, 0, 16)))), y = get(contiguous(get(narrow(data, 1, 1, 16))));
    if (!update) {  // as a compiled call draws: one random step per call
      const auto r = graph->random_state();
      graph->set_random_state({r.seed, r.step + 1, 0});
      return body(x, y);
    }
    if (get(update->begin({x, y})) == Compiled::Next::replayed) return update->outputs()[0];
    const auto loss = body(update->arguments()[0], update->arguments()[1]);
    return get(update->end({loss}))[0];
  }

  std::vector<std::vector<std::byte>> losses(int n) {
    std::vector<std::vector<std::byte>> out;
    for (int i = 0; i < n; ++i) out.push_back(bits(step()));
    return out;
  }
};

}  // namespace

TEST_CASE("training repeats bit for bit, eager and compiled", "[unit][tensor]") {
  auto eager = Training::start(false), again = Training::start(false), compiled = Training::start(true);
  const auto first = eager.losses(12);
  CHECK(again.losses(12) == first);
  CHECK(compiled.losses(12) == first);
  CHECK(compiled.update->info().calls > 0);
  CHECK(compiled.update->info().arena_bytes * 2 < compiled.update->info().temporary_bytes);
  for (std::size_t i = 0; i < eager.model.parameters.size(); ++i) {
    CHECK(bits(eager.model.parameters[i].second) == bits(compiled.model.parameters[i].second));
  }
  CHECK(get(eager.graph->item_blocking(eager.step())) < 2.5);  // ln 64 = 4.16: it learns
}

TEST_CASE("a restored state goes on bit for bit", "[unit][tensor]") {
  auto first = Training::start(true);
  first.losses(5);
  std::vector<HostData> saved;
  const auto random = first.graph->random_state();
  const auto each_tensor = [](Training& t, auto f) {
    for (auto& [name, p] : t.model.parameters) f(p);
    for (auto& [name, s] : t.opt.state()) f(s);
    f(t.data);
  };
  each_tensor(first, [&](const Tensor& t) { saved.push_back(get(first.graph->read_blocking(t))); });
  const auto want = first.losses(6);

  auto second = Training::start(true);
  second.losses(1);  // somewhere else entirely
  std::size_t i = 0;
  each_tensor(second, [&](Tensor t) {
    NoGrad guard(*second.graph);
    const auto& s = saved[i++];
    get(copy_(t, get(from_bytes(*second.graph, s.shape, s.dtype, s.bytes.data(), s.bytes.size()))));
  });
  second.graph->set_random_state(random);
  CHECK(second.losses(6) == want);
}

TEST_CASE("the memory of a training is listed by parts", "[unit][tensor]") {
  auto g = new_graph();
  g->set_where([] { return std::string("train.lua:7"); });
  const auto parts = [&] {
    get(g->synchronize_blocking());
    return g->device()->memory_summary();
  };
  const auto said = [&](const char* what) {
    INFO(parts());
    CHECK(parts().find(what) != std::string::npos);
  };
  const auto silent = [&](const char* what) { CHECK(parts().find(what) == std::string::npos); };
  auto w = get(ones(*g, dims({8, 8}))), b = get(ones(*g, dims({8})));
  for (auto* t : {&w, &b}) {
    get(t->set_requires_grad(true));
    own(*t, "parameters of Linear");
  }
  own_unowned(w, "somebody else");
  auto o = get(Optimizer::create({{{{"w", w}, {"b", b}}, 0.1, 0, Adam{}}}));
  said("parameters of Linear 320 B in 2");
  said("state of adamw at train.lua:7 768 B in 6");  // 256, 256, 64, 64; the step and the rate
  const auto x = get(ones(*g, dims({4, 8})));
  auto loss = get(sum(get(gelu(get(linear(x, w, b))))));
  said("activations kept for backward 128 B in 1");  // what gelu was given
  get(backward(loss));
  said("gradients 320 B in 2");
  silent("activations");
  get(o.step());
  silent("gradients");
  said("parameters of Linear 320 B in 2");

  const auto copy = get(from_bytes(*g, dims({8}), DType::f32, std::vector<float>(8).data(), 32));
  said("data from the host 64 B in 1");
  CHECK(owner_of_copy(w) == std::string("parameters of Linear"));
  CHECK(owner_of_copy(copy) == nullptr);
  get(backward(get(sum(get(mul(w, 2))))));
  CHECK(owner_of_copy(w.grad()) == nullptr);
}

TEST_CASE("training gives its memory back", "[unit][tensor]") {
  std::shared_ptr<device::Device> device;
  {
    auto t = Training::start(true);
    device = t.graph->device();
    t.losses(4);
    const auto live = device->memory().live_bytes;
    t.losses(8);
    CHECK(device->memory().live_bytes == live);
  }
  auto drained = get(Graph::create(device));
  get(drained->synchronize_blocking());
  CHECK(device->memory().live_bytes == 0);
}

}  // namespace rille::tensor
