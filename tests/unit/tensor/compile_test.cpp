// compile: what a plan keeps, what it refuses, and what it leaves behind.
#include "fixture.hpp"

namespace rille::tensor {
namespace {

// Calls `fn` through `compiled`, as a binding does.
template <class F>
Result<std::vector<Tensor>> call(Compiled& compiled, const std::vector<Tensor>& in, const F& fn,
                                 const std::string& key = {}) {
  RILLE_TRY(const auto next, compiled.begin(in, key));
  if (next == Compiled::Next::replayed) return compiled.outputs();
  return compiled.end(fn(compiled.arguments()));
}

Tensor filled(Graph& g, double x, std::int64_t n = 3) { return get(full(g, dims({n}), x)); }

}  // namespace

TEST_CASE("compiled calls give what the function gives, and old outputs stay", "[unit][tensor]") {
  auto g = new_graph();
  Compiled c(g);
  int runs = 0;
  const auto fn = [&](const std::vector<Tensor>& in) {
    ++runs;
    const auto a = get(mul(in[0], 2)), unused = get(exp(a));
    return std::vector<Tensor>{get(add(a, 1)), get(sum(a)), in[0], get(narrow(a, 0, 1, 2))};
  };
  std::vector<std::vector<Tensor>> kept;
  for (int i = 0; i < 5; ++i) kept.push_back(get(call(c, {filled(*g, i)}, fn)));
  for (int i = 0; i < 5; ++i) {
    CHECK(numbers(kept[i][0]) == std::vector<double>(3, 2 * i + 1));
    CHECK(numbers(kept[i][1]) == std::vector<double>{6.0 * i});
    CHECK(numbers(kept[i][2]) == std::vector<double>(3, i));
    CHECK(numbers(kept[i][3]) == std::vector<double>(2, 2 * i));
  }
  CHECK(runs == 2);
  CHECK(c.info().recorded == 4);
  CHECK(c.info().calls == 2);  // exp was dead; the product and its sum with 1 are one
}

TEST_CASE("what a compiled function's first call frees does not pile up", "[unit][tensor]") {
  auto g = new_graph();
  Compiled c(g);
  const auto fn = [&](const std::vector<Tensor>& in) {
    Tensor total = in[0];
    for (std::int64_t i = 0; i < 10; ++i)  // 16 to 34 MiB, each of its own size
      total = get(add(total, get(sum(get(full(*g, dims({(16 + 2 * i) << 18}), 1))))));
    return std::vector<Tensor>{total};
  };
  const auto before = g->device()->memory().cached_bytes;
  CHECK(numbers(get(call(c, {filled(*g, 0, 1)}, fn))[0])[0] == 250 << 18);
  CHECK(g->device()->memory().cached_bytes - before < std::int64_t(150) << 20);  // of 250
}

TEST_CASE("what is asked for twice is computed once, but random numbers and what is written are not",
          "[unit][tensor]") {
  auto g = new_graph();
  Compiled c(g);
  const auto fn = [&](const std::vector<Tensor>& in) {
    const auto a = get(exp(in[0])), b = get(exp(in[0]));  // the same
    auto d = get(exp(in[0]));                             // written: its own
    get(add_(d, in[0]));
    const auto r = get(rand(*g, dims({3}))), s = get(rand(*g, dims({3})));
    return std::vector<Tensor>{get(sub(a, b)), get(sub(d, a)), get(sub(r, s)), get(sub(get(neg(a)), get(neg(b))))};
  };
  for (int i = 0; i < 4; ++i) {
    const auto out = get(call(c, {filled(*g, 1)}, fn));
    CHECK(numbers(out[0]) == std::vector<double>(3, 0));
    CHECK(numbers(out[1])[0] == Approx(1));
    CHECK(numbers(out[2])[0] != 0);
    CHECK(numbers(out[3]) == std::vector<double>(3, 0));
  }
  CHECK(c.info().recorded == 12);
  CHECK(c.info().calls == 6);  // one exp and one neg less; each result's element-wise operations are one
}

TEST_CASE("the gradient of a table that is used twice has the same bits, compiled or not", "[unit][tensor]") {
  for (const bool ids_first : {true, false}) {
    auto g = new_graph();
    Compiled c(g);
    auto table = get(randn(*g, dims({7, 300})));
    REQUIRE(table.set_requires_grad(true).ok());
    const auto ids = get(from_numbers(*g, dims({2, 4}), DType::i64, {3, 0, 3, 6, 3, 6, 1, 0}));
    std::vector<std::vector<double>> grads;
    for (int i = 0; i < 4; ++i) {
      const auto fn = [&](const std::vector<Tensor>& in) {
        const auto x = get(tanh(get(embedding(table, in[0])))), y = get(linear(x, table));
        const auto loss = get(sum(ids_first ? get(add(get(sum(y)), get(sum(x)))) : get(mul(y, y))));
        REQUIRE(backward(loss).ok());
        return std::vector<Tensor>{loss};
      };
      (void)get(call(c, {ids}, fn));
      grads.push_back(numbers(table.grad()));
      CHECK(table.set_grad({}).ok());
      CHECK(grads.back() == grads.front());
    }
    bool joined = false;
    for (const auto& row : c.info().costs) joined = joined || row.name == "embedding_add";
    CHECK(joined);
  }
}

TEST_CASE("AdamW is given half gradients as they are, and gives the bits of the uncompiled step", "[unit][tensor]") {
  for (const DType half : {DType::bf16, DType::f16}) {
    for (const bool clipped : {false, true}) {
      std::vector<std::vector<double>> got;
      for (const bool compiled : {false, true}) {
        auto g = new_graph();
        g->manual_seed(7);
        auto modes = g->modes();
        modes.autocast = half;
        g->set_modes(modes);
        auto w = get(randn(*g, dims({40, 30}))), b = get(randn(*g, dims({40})));
        const auto x = get(randn(*g, dims({9, 30})));
        for (Tensor* t : {&w, &b}) get(t->set_requires_grad(true));
        auto opt = get(Optimizer::create({{{{"w", w}, {"b", b}}, 0.1, 0.01}}));
        const auto fn = [&](const std::vector<Tensor>& in) {
          const auto y = get(cast(get(linear(in[0], w, b)), DType::f32)), loss = get(sum(get(mul(y, y))));
          get(backward(loss));
          if (clipped) get(clip_grad_norm({w, b}, 1));
          get(opt.step());
          return std::vector<Tensor>{loss.detach()};
        };
        Compiled c(g);
        for (int i = 0; i < 5; ++i) {
          if (compiled) (void)get(call(c, {x}, fn));
          else (void)fn({x});
        }
        got.push_back(numbers(w));
        if (!compiled) continue;
        int casts = 0;  // of x, w and b; where they are clipped, of their gradients too
        for (const auto& row : c.info().costs)
          if (row.name == "cast") casts += int(row.calls);
        CHECK(casts == (clipped ? 5 : 3));
      }
      CHECK(got[0] == got[1]);
    }
  }
}

TEST_CASE("shapes, keys and memory shared by arguments make variants", "[unit][tensor]") {
  auto g = new_graph();
  Compiled c(g);
  int runs = 0;
  double factor = 2;
  const auto fn = [&](const std::vector<Tensor>& in) {
    ++runs;
    return std::vector<Tensor>{get(mul(get(add(in[0], in[1])), factor))};
  };
  for (int i = 0; i < 3; ++i) {
    for (std::int64_t n : {2, 3})
      CHECK(numbers(get(call(c, {filled(*g, i, n), filled(*g, 1, n)}, fn, "2"))[0])[0] == 2 * (i + 1));
    const auto x = filled(*g, i);
    CHECK(numbers(get(call(c, {x, x}, fn, "2"))[0])[0] == 4 * i);
    factor = 5;
    CHECK(numbers(get(call(c, {filled(*g, i), filled(*g, 1)}, fn, "5"))[0])[0] == 5 * (i + 1));
    factor = 2;
  }
  CHECK(runs == 8);
}

TEST_CASE("windows of one batch are the same variant, wherever they start", "[unit][tensor]") {
  auto g = new_graph();
  Compiled c(g);
  int runs = 0;
  const auto fn = [&](const std::vector<Tensor>& in) {
    ++runs;
    return std::vector<Tensor>{get(sum(get(narrow(in[0], 0, 1, 1))))};
  };
  const auto data = get(reshape(get(arange(*g, 0, 12, 1, DType::f32)), dims({6, 2})));
  for (int i = 0; i < 4; ++i) CHECK(numbers(get(call(c, {get(narrow(data, 0, i, 2))}, fn))[0])[0] == 4 * i + 5);
  CHECK(runs == 2);
}

TEST_CASE("a function that does something else is refused, and the difference named", "[unit][tensor]") {
  auto g = new_graph();
  int line = 0;
  g->set_where([&] { return "train.lua:" + std::to_string(++line); });
  Compiled c(g);
  int calls = 0;
  const auto fn = [&](const std::vector<Tensor>& in) {
    const auto a = get(mul(in[0], 2));
    return std::vector<Tensor>{++calls == 2 ? get(exp(a)) : get(add(a, 1))};
  };
  get(call(c, {filled(*g, 1)}, fn));
  const auto r = call(c, {filled(*g, 1)}, fn);
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == ErrorKind::state);
  CHECK(r.error().message.find("operation 2 was add(f32[3]) at train.lua:2, now exp(f32[3]) at train.lua:4") !=
        std::string::npos);
}

TEST_CASE("host data and plain numbers that change are named", "[unit][tensor]") {
  auto g = new_graph();
  double x = 0;
  Compiled c(g), d(g);
  const auto data = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{get(add(in[0], get(from_numbers(*g, dims({1}), DType::f32, {x += 1}))))};
  };
  get(call(c, {filled(*g, 1)}, data));
  CHECK(call(c, {filled(*g, 1)}, data).error().message.find("host data that changed") != std::string::npos);
  const auto number = [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{get(add(in[0], x += 1))}; };
  get(call(d, {filled(*g, 1)}, number));
  CHECK(call(d, {filled(*g, 1)}, number).error().message.find("a plain number changed") != std::string::npos);
}

TEST_CASE("reading while tracing is refused; handles die with the trace", "[unit][tensor]") {
  auto g = new_graph();
  Compiled c(g);
  Tensor inside;
  const auto fn = [&](const std::vector<Tensor>& in) {
    inside = get(mul(in[0], 2));
    if (g->tracing()) CHECK(g->read_blocking(inside).error().kind == ErrorKind::state);
    return std::vector<Tensor>{get(add(inside, 1))};
  };
  for (int i = 0; i < 2; ++i) get(call(c, {filled(*g, 1)}, fn));
  CHECK(add(inside, 1).error().kind == ErrorKind::state);
  CHECK(g->read_blocking(inside).error().kind == ErrorKind::state);
}

TEST_CASE("an abandoned call leaves no trace", "[unit][tensor]") {
  auto g = new_graph();
  auto p = filled(*g, 2);
  get(p.set_requires_grad(true));
  Compiled c(g);
  const auto fn = [&](const std::vector<Tensor>& in) {
    get(backward(get(sum(get(mul(p, in[0]))))));
    return std::vector<Tensor>{get(sum(p.grad()))};
  };
  get(call(c, {filled(*g, 3)}, fn));
  get(p.set_grad({}));
  REQUIRE(get(c.begin({filled(*g, 3)})) == Compiled::Next::call);
  fn(c.arguments());
  c.abandon();
  CHECK_FALSE(p.grad());
  CHECK_FALSE(g->tracing());
  CHECK(numbers(get(call(c, {filled(*g, 4)}, fn))[0]) == std::vector<double>{12});
  CHECK(numbers(p.grad()) == std::vector<double>(3, 4));
}

TEST_CASE("gradients accumulate over compiled calls", "[unit][tensor]") {
  auto g = new_graph();
  auto p = filled(*g, 2);
  get(p.set_requires_grad(true));
  Compiled c(g);
  const auto fn = [&](const std::vector<Tensor>& in) {
    const auto loss = get(sum(get(mul(p, in[0]))));
    get(backward(loss));
    return std::vector<Tensor>{loss};
  };
  double want = 0;
  Tensor earlier;
  for (int i = 1; i <= 6; ++i) {
    get(call(c, {filled(*g, i)}, fn));
    want += i;
    CHECK(numbers(p.grad()) == std::vector<double>(3, want));
    if (i == 4) earlier = p.grad();
  }
  CHECK(numbers(earlier) == std::vector<double>(3, 10));
  get(p.set_grad({}));
  get(call(c, {filled(*g, 7)}, fn));
  CHECK(numbers(p.grad()) == std::vector<double>(3, 7));
}

TEST_CASE("writes to tensors made outside are part of the plan", "[unit][tensor]") {
  auto g = new_graph();
  auto count = get(zeros(*g, dims({2})));
  Compiled c(g);
  const auto fn = [&](const std::vector<Tensor>& in) {
    const auto before = get(clone(count));
    get(add_(count, in[0]));
    return std::vector<Tensor>{before, get(mul(count, 10))};
  };
  for (int i = 0; i < 5; ++i) {
    const auto out = get(call(c, {get(ones(*g, dims({2})))}, fn));
    CHECK(numbers(out[0])[0] == i);
    CHECK(numbers(out[1])[1] == 10 * (i + 1));
  }
  get(fill_(count, 100));
  CHECK(numbers(get(call(c, {get(ones(*g, dims({2})))}, fn))[1])[0] == 1010);
}

TEST_CASE("an error in a replay reaches the reader; later writes do not happen", "[unit][tensor]") {
  auto g = new_graph();
  auto table = get(ones(*g, dims({4, 2}))), count = get(zeros(*g, {}));
  Compiled c(g);
  const auto fn = [&](const std::vector<Tensor>& in) {
    const auto total = get(sum(get(embedding(table, in[0]))));
    get(add_(count, total));
    return std::vector<Tensor>{total};
  };
  const auto ids = [&](double id) { return get(from_numbers(*g, dims({1}), DType::i64, {id})); };
  for (int i = 0; i < 3; ++i) CHECK(numbers(get(call(c, {ids(i)}, fn))[0])[0] == 2);
  const auto bad = get(call(c, {ids(4)}, fn));
  CHECK(g->read_blocking(bad[0]).error().message.find("id 4") != std::string::npos);
  CHECK(numbers(count)[0] == 6);
  CHECK(numbers(get(call(c, {ids(1)}, fn))[0])[0] == 2);
}

TEST_CASE("check mode retraces every call", "[unit][tensor]") {
  auto g = new_graph();
  Compiled c(g, true);
  int runs = 0;
  const auto fn = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{get(add(in[0], ++runs == 4 ? 2 : 1))};
  };
  for (int i = 0; i < 3; ++i) CHECK(numbers(get(call(c, {filled(*g, i)}, fn))[0])[0] == i + 1);
  CHECK_FALSE(call(c, {filled(*g, 1)}, fn).ok());
  CHECK(runs == 4);
}

TEST_CASE("compile: wrong calls are refused", "[unit][tensor]") {
  auto g = new_graph();
  Compiled a(g), b(g);
  auto p = filled(*g, 1);
  get(p.set_requires_grad(true));
  CHECK(a.begin({p}).error().kind == ErrorKind::invalid);
  CHECK(a.begin({Tensor{}}).error().kind == ErrorKind::invalid);
  get(a.begin({}));
  CHECK(b.begin({}).error().kind == ErrorKind::state);
  a.abandon();
  CHECK(a.end({}).error().kind == ErrorKind::state);
  get(b.begin({}));
  CHECK_FALSE(b.end({Tensor{}}).ok());
  get(b.begin({}));
}

TEST_CASE("each recording beyond the first has its cause", "[unit][tensor]") {
  auto g = new_graph();
  Compiled c(g);
  auto leaf = get(full(*g, dims({4}), 1));
  REQUIRE(leaf.set_requires_grad(true).ok());
  const auto fn = [&](const std::vector<Tensor>& in) {
    const auto loss = get(mul(get(sum(in[0])), get(sum(leaf))));
    REQUIRE(backward(loss).ok());
    return std::vector<Tensor>{loss};
  };
  const auto latest = [&] { return c.retraces().latest.empty() ? "" : c.retraces().latest.back().cause; };
  const auto matrix = [&](std::int64_t m, std::int64_t n) { return get(full(*g, dims({m, n}), 1)); };
  const auto with = [&](const Tensor& t, const std::string& key, bool grad = false) {
    get(leaf.set_grad(grad ? get(full(*g, dims({4}), 1)) : Tensor{}));
    get(call(c, {t}, fn, key));
    return latest();
  };
  CHECK(with(matrix(8, 12), "|t|2") == "");
  CHECK(with(matrix(8, 12), "|t|2") == "");
  CHECK(c.retraces().count == 0);
  CHECK(with(matrix(6, 12), "|t|2") == "argument 1: f32[8, 12] became f32[6, 12]");
  CHECK(with(get(transpose(matrix(12, 6), 0, 1)), "|t|2") == "argument 1: strides [12, 1] became [1, 6]");
  CHECK(with(get(cast(matrix(6, 12), DType::f64)), "|t|2") == "argument 1: f32[6, 12] became f64[6, 12]");
  CHECK(with(matrix(6, 12), "|t|3") == "argument 2: 2 became 3");
  CHECK(with(matrix(6, 12), "|t|\"a|b\"") == "argument 2: 3 became \"a|b\"");
  CHECK(with(matrix(6, 12), "autocast=bf16|t|3") == "autocast: off became bf16");
  CHECK(with(matrix(6, 12), "mode=1|t|3") == "a model went from train to eval mode, or back");
  CHECK(with(matrix(6, 12), "|t|3", true) == "leaf f32[4] had no gradient and has one now");
  CHECK(with(matrix(6, 12), "|t") == "2 arguments became 1");
  CHECK(c.retraces().count == 9);
  CHECK(c.retraces().calls == 11);
  CHECK(c.retraces().latest.front().call == 3);
  CHECK(c.variants() == 10);
  CHECK(c.retraces().dropped == 0);
  const auto line = c.take_warning();  // of eight: the gradient's does not count
  CHECK(line ==
        "recorded anew 9 times in 11 calls; the latest cause is 2 arguments became 1: "
        "make one compiled function for each way of calling it");
  CHECK(c.take_warning() == "");
  with(matrix(5, 12), "|t|3");
  CHECK(c.take_warning() == "");

  Compiled other(new_graph());  // as a binding goes on with arguments of another device
  other.succeed(c);
  CHECK(other.retraces().dropped == 11);
  get(call(other, {get(full(*new_graph(), dims({3}), 1))},
           [](const std::vector<Tensor>& in) { return std::vector<Tensor>{get(neg(in[0]))}; }));
  CHECK(other.retraces().latest.back().cause == "the arguments' device: cpu became cpu");
}

TEST_CASE("the parts of an accumulation are causes, and recordings that make room are counted", "[unit][tensor]") {
  auto g = new_graph();
  const auto fn = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{get(neg(in[0]))}; };
  Compiled parts(g, false, Recompute::none, false, 4);
  for (int i = 0; i < 12; ++i) get(call(parts, {filled(*g, 1)}, fn));
  CHECK(parts.retraces().count == 2);  // first, one, last
  CHECK(parts.retraces().latest.front().cause == "part of an accumulation: first of 4 became one of 4");
  CHECK(parts.take_warning() == "");

  Compiled many(g);
  const auto limit = std::int64_t(Compiled::variant_limit);
  for (std::int64_t n = 1; n <= limit + 1; ++n) {
    get(call(many, {filled(*g, 1, n)}, fn));
    const auto line = many.take_warning();
    CHECK((n == 9) == !line.empty());
    if (n == 9)
      CHECK(line ==
            "recorded anew 8 times in 9 calls; the latest cause is argument 1: f32[8] became f32[9]: "
            "pad to one shape, or to a few (buckets)");
  }
  CHECK(many.variants() == Compiled::variant_limit);
  CHECK(many.retraces().dropped == 1);
  get(call(many, {filled(*g, 1, 1)}, fn));  // the one that made room
  CHECK(many.retraces().latest.back().cause.starts_with("its recording had been dropped: 32 are kept; argument 1: "));
  CHECK(many.retraces().latest.size() == Retraces::kept);
}

TEST_CASE("memory is listed by owner", "[unit][tensor]") {
  auto g = new_graph();
  g->set_where([] { return std::string("train.lua:12"); });
  Compiled c(g);
  const auto fn = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{get(matmul(get(matmul(in[0], in[0])), in[0]))};
  };
  const auto x = get(full(*g, dims({100, 100}), 1));
  std::vector<Tensor> out;
  for (int i = 0; i < 3; ++i) out = get(call(c, {x}, fn));
  get(g->synchronize_blocking());
  const auto text = g->device()->memory_summary();
  INFO(text);
  CHECK(text.find("fill 41.0 kB in 1") != std::string::npos);
  CHECK(text.find("arena of the compiled function at train.lua:12 41.0 kB in 1") != std::string::npos);
  CHECK(text.find("results of the compiled function at train.lua:12 41.0 kB in 1") != std::string::npos);
}

}  // namespace rille::tensor
