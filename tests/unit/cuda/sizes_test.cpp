// What small declarations do not reach: many blocks, packs with a rest, parts that are added up later, sorting in
// several tiles, updates of many tensors, numbers out of range, and a whole training step.
#include "../tensor/gpt.hpp"
#include "compared.hpp"

namespace rille::tensor {
namespace {

const Types all_floats{DType::f32, DType::f64, DType::bf16, DType::f16};

void read(const Tensor& t) { get(t.graph().read_blocking(t)); }
// Runs the gradients of `out` into every leaf.
void backwards(const Tensor& out, const Tensors& leaves) {
  get(backward(get(sum(get(mul(out, get(cast(get(randn(out.graph(), out.shape())), out.dtype()))))))));
  for (const auto& l : leaves) read(l.grad());
}

}  // namespace

TEST_CASE("element-wise: packs, rests, repeated operands and windows", "[unit][cuda][checked]") {
  Compared compared;
  Graph& g = *compared.graph;
  for (const DType t : numbers_of_all_types()) {
    compared.now(name_of(t));
    const auto whole = get(cast(get(randint(g, -50, 50, dims({33, 40}))), t));
    const auto row = get(cast(get(randint(g, 1, 9, dims({40}))), t));
    read(get(add(whole, row)));
    read(get(mul(get(flatten(whole)), 3)));
    read(get(sub(get(narrow(whole, 1, 1, 37)), get(narrow(whole, 1, 2, 37)))));
    read(get(maximum(get(transpose(whole, 0, 1)), get(transpose(get(clone(whole)), 0, 1)))));
    read(get(remainder(whole, row)));
    read(get(floor_divide(get(expand(row, dims({33, 40}))), row)));
    read(get(lt(whole, row)));
    read(get(where(get(gt(whole, 3)), whole, get(neg(whole)))));
    for (const DType to : {DType::boolean, DType::u8, DType::i32, DType::bf16, DType::f16, DType::f32, DType::f64}) {
      read(get(cast(whole, to)));
      read(get(cast(get(transpose(whole, 0, 1)), to)));
    }
    auto copy = get(clone(whole));
    auto window = get(narrow(copy, 1, 4, 20));
    get(add_(window, get(narrow(whole, 1, 0, 20)), 2));
    get(mul_(window, 2));
    get(mul_(window, get(narrow(whole, 1, 0, 20))));
    get(fill_(window, 3));
    read(copy);
    read(get(arange(g, 0, 50, 1, t)));
    read(get(flip(whole, {0, 1})));
    read(get(tril(whole)));
    read(get(pad(whole, {1, 2, 3, 4})));
  }
  compared.check();
}

TEST_CASE("reductions: parts, columns, and every order of dimensions", "[unit][cuda][checked]") {
  Compared compared;
  Graph& g = *compared.graph;
  for (const DType t : numbers_of_all_types()) {
    const auto line = get(cast(get(randint(g, -9, 9, dims({70001}))), t));
    const auto cube = get(view(get(narrow(line, 0, 1, 24 * 50 * 40)), dims({24, 50, 40})));
    const auto tall = get(view(get(narrow(line, 0, 0, 70000)), dims({3500, 20})));
    for (const auto& [x, along] : std::vector<std::pair<Tensor, std::vector<int>>>{{line, {}},
                                                                                   {cube, {0}},
                                                                                   {cube, {1}},
                                                                                   {cube, {2}},
                                                                                   {cube, {0, 2}},
                                                                                   {cube, {1, 2}},
                                                                                   {cube, {}},
                                                                                   {tall, {0}}}) {
      compared.now(std::string(name_of(t)) + " of " + to_string(x.shape()) + " along " + std::to_string(along.size()));
      read(get(sum(x, along)));
      read(get(max(x, along)));
      read(get(min(x, along)));
      if (is_floating(t)) read(get(mean(x, along)));
    }
    compared.now(std::string("places in ") + name_of(t));
    for (const int d : {0, 1, 2}) {
      read(get(argmax(cube, d)));
      read(get(argmin(cube, d)));
    }
    read(get(argmax(line, 0)));
    if (t != DType::i64 && !is_floating(t)) continue;
    read(get(cumsum(get(narrow(cube, 2, 0, 3)), 1)));
    read(get(cumsum(get(narrow(line, 0, 0, 700)), 0)));
    read(get(prod(get(narrow(cube, 0, 0, 2)), {1})));
    if (is_floating(t)) {
      const auto x = leaf_of(get(rand(g, dims({3, 700}))), t);
      backwards(get(prod(get(add(x, 0.6)), {1})), {x});
    }
  }
  compared.check();
}

TEST_CASE("rows: short, long, odd, and their gradients", "[unit][cuda][checked]") {
  Compared compared;
  Graph& g = *compared.graph;
  for (const DType t : all_floats) {
    for (const auto& shape : {dims({37, 64}), dims({3, 5000}), dims({9, 131})}) {
      compared.now(std::string(name_of(t)) + " of " + to_string(shape));
      const auto x = leaf_of(get(mul(get(randn(g, shape)), 3)), t);
      backwards(get(softmax(x, 1)), {x});
      backwards(get(log_softmax(x, 1)), {x});
      const auto labels = get(randint(g, 0, shape[1], dims({shape[0]}), shape[1] < 100 ? DType::u8 : DType::i32));
      const auto y = leaf_of(x, t);
      get(backward(get(cross_entropy(y, labels, 3, shape[1] < 100 ? 0.1 : 0))));
      read(y.grad());
      for (const DType w : {t, stats_type(t)}) {
        const auto weight = leaf_of(get(randn(g, dims({shape[1]}))), w), bias = leaf_of(weight, w);
        const auto z = leaf_of(x, t);
        backwards(get(layer_norm(z, weight, bias)), {z, weight, bias});
        backwards(get(layer_norm(z, {}, {})), {z});
        backwards(get(rms_norm(z, weight)), {z, weight});
      }
    }
    compared.now(std::string("batch_norm in ") + name_of(t));
    for (const auto& shape : {dims({4, 3, 70, 41}), dims({130, 5, 1, 1})}) {
      const auto x = leaf_of(get(add(get(randn(g, shape)), 5)), t);
      BatchNorm how;
      how.weight = leaf_of(get(randn(g, dims({shape[1]}))), t);
      how.bias = leaf_of(how.weight, t);
      backwards(get(batch_norm(x, how)), {x, how.weight, how.bias});
    }
  }
  const auto empty = get(full(g, dims({2, 40}), -HUGE_VAL));
  read(get(softmax(empty, 1)));
  read(get(softmax(get(cat({empty, get(zeros(g, dims({2, 3})))}, 1)), 1)));
  compared.check();
}

TEST_CASE("tables: numbers sorted in several tiles", "[unit][cuda][checked]") {
  Compared compared;
  Graph& g = *compared.graph;
  for (const DType t : all_floats) {
    compared.now(name_of(t));
    for (const std::int64_t width : {24, 1, 7}) {
      const auto table = leaf_of(get(randn(g, dims({300, width}))), t);
      backwards(get(embedding(table, get(randint(g, 0, 300, dims({5, 1000}))))), {table});
    }
    const auto x = leaf_of(get(randn(g, dims({4, 60, 3}))), t);
    const auto ids = get(randint(g, 0, 60, dims({200}), DType::i32));
    backwards(get(index_select(x, 1, ids)), {x});
    const auto index = get(randint(g, 0, 60, dims({4, 90, 3}), DType::u8));
    backwards(get(gather(x, 1, index)), {x});
    const auto src = leaf_of(get(randn(g, dims({4, 90, 3}))), t);
    read(get(scatter(x, 1, index, src, true)));
    read(get(scatter(x, 1, index, src)));
    read(get(scatter(get(permute(x, dims({2, 1, 0}))), 1, get(permute(index, dims({2, 1, 0}))),
                     get(permute(src, dims({2, 1, 0}))))));
  }
  for (const DType t : numbers_of_all_types()) {
    compared.now(std::string("sort in ") + name_of(t));
    const auto x = get(cast(get(randint(g, -100, 100, dims({3, 4500}))), t));
    for (const bool descending : {false, true}) {
      const auto s = get(sort(x, 1, descending));
      read(s.values);
      read(s.places);
      const auto rows = get(sort(get(view(x, dims({450, 30}))), 1, descending));
      read(rows.places);
    }
    read(get(topk(x, 7, 1)).places);
  }
  const auto odd = get(from_numbers(g, dims({6}), DType::f32, {NAN, 0.0, -0.0, -HUGE_VAL, NAN, 1}));
  read(get(sort(odd, 0)).places);
  read(get(sort(odd, 0, true)).places);
  compared.check();
}

TEST_CASE("random numbers equal the CPU's", "[unit][cuda][checked]") {
  Compared compared;
  Graph& g = *compared.graph;
  g.manual_seed(123456789012345);
  for (const DType t : all_floats) {
    compared.now(name_of(t));
    read(get(rand(g, dims({1001}), t)));
    read(get(randn(g, dims({17, 3}), t)));
    read(get(dropout(get(randn(g, dims({777}), t)), 0.3)));
    read(get(multinomial(get(rand(g, dims({9, 700}), t)))));
    read(get(multinomial(get(from_numbers(g, dims({4}), t, {0, 0, 1, 0})))));
  }
  for (const DType t : integers) read(get(randint(g, t == DType::u8 ? 0 : -3, 100, dims({1001}), t)));
  read(get(randint(g, 0, std::int64_t(1) << 40, dims({99}))));
  compared.check();
}

TEST_CASE("products of any strides", "[unit][cuda][checked]") {
  Compared compared;
  Graph& g = *compared.graph;
  for (const DType t : all_floats) {
    compared.now(name_of(t));
    const auto a = get(cast(get(randn(g, dims({3, 70, 33}))), t)), b = get(cast(get(randn(g, dims({3, 33, 130}))), t));
    read(get(matmul(a, b)));
    read(get(matmul(get(transpose(b, 1, 2)), get(transpose(a, 1, 2)))));
    read(get(matmul(a, get(select(b, 0, 1)))));
    const auto x = leaf_of(a, t), w = leaf_of(get(randn(g, dims({65, 33}))), t);
    const auto bias = leaf_of(get(rand(g, dims({65}))), t);
    backwards(get(linear(x, w, bias)), {x, w, bias});
  }
  compared.check();
}

TEST_CASE("attention: blocks, groups, masks, and tensor cores", "[unit][cuda][checked]") {
  for (const int architecture : {75, 90}) {
    Compared compared(architecture);
    Graph& g = *compared.graph;
    for (const DType t : all_floats) {
      for (const std::int64_t d : {24, 64, 128}) {
        // Every shape where it takes a way of its own; the emulated tensor cores are slow.
        const bool tensor = d != 24 && is_half(t) && architecture >= 80;
        if ((d != 24 && !tensor && t != DType::f32) || (d == 128 && t != DType::f16)) continue;
        for (const auto& [queries, keys, causal] : std::vector<std::tuple<std::int64_t, std::int64_t, bool>>{
                 {140, 140, true}, {70, 133, true}, {65, 40, false}}) {
          if (d != 24 && (t == DType::f16) != (queries == 70)) continue;
          compared.now(std::string(name_of(t)) + ", sm_" + std::to_string(architecture) + ", heads of " +
                       std::to_string(d) + ", " + std::to_string(queries) + " x " + std::to_string(keys));
          const auto q = leaf_of(get(randn(g, dims({1, 2, queries, d}))), t);
          const auto k = leaf_of(get(randn(g, dims({1, 2, keys, d}))), t);
          const auto v = leaf_of(get(randn(g, dims({1, 2, keys, d}))), t);
          backwards(get(scaled_dot_product_attention(q, k, v, causal)), {q, k, v});
        }
      }
      compared.now(std::string("groups in ") + name_of(t));
      const auto q = leaf_of(get(randn(g, dims({1, 4, 70, 64}))), t);
      const auto k = leaf_of(get(randn(g, dims({1, 2, 70, 64}))), t),
                 v = leaf_of(get(randn(g, dims({1, 2, 70, 64}))), t);
      backwards(get(scaled_dot_product_attention(q, k, v, Attention{true})), {q, k, v});
      const auto seen = get(lt(get(rand(g, dims({70, 70}))), 0.5));
      backwards(get(scaled_dot_product_attention(q, k, v, Attention{false, 0, seen})), {q, k, v});
    }
    compared.check();
    for (const char* kernel : {"attention_tensor_64_bf16", "attention_tensor_grad_keys_128_f16"})
      CHECK(compared.kernels().count(kernel) == (architecture >= 80));
  }
}

TEST_CASE("images and transforms of uneven sizes", "[unit][cuda][checked]") {
  Compared compared;
  Graph& g = *compared.graph;
  for (const DType t : all_floats) {
    compared.now(name_of(t));
    const auto x = leaf_of(get(randn(g, dims({3, 6, 19, 17}))), t);
    const auto w = leaf_of(get(randn(g, dims({70, 3, 3, 2}))), t), b = leaf_of(get(randn(g, dims({70}))), t);
    Convolution how;
    how.stride = {2, 1};
    how.padding = {1, 2};
    how.dilation = {1, 2};
    how.groups = 2;
    backwards(get(conv2d(x, w, b, how)), {x, w, b});
    Pooling pool;
    pool.window = {3, 2};
    pool.stride = {2, 1};
    pool.padding = {1, 0};
    backwards(get(max_pool2d(x, pool)), {x});
    backwards(get(avg_pool2d(x, pool)), {x});
    backwards(get(avg_pool2d(x, pool, false)), {x});
    backwards(get(adaptive_avg_pool2d(x, 7, 23)), {x});
    for (const std::int64_t n : {64, 60, 37}) {
      const auto line = get(cast(get(randn(g, dims({5, n}))), t));
      read(get(irfft(get(rfft(line)), n)));
      const auto plane = get(cast(get(randn(g, dims({2, 12, n}))), t));
      read(get(irfft2(get(rfft2(plane)), n)));
      read(get(ifft2(get(fft2(get(cast(get(randn(g, dims({3, n, 8, 2}))), t)))))));
    }
  }
  compared.check();
}

TEST_CASE("updates of many tensors", "[unit][cuda][checked]") {
  Compared compared;
  Graph& g = *compared.graph;
  for (const DType t : {DType::f32, DType::f64}) {
    ParameterGroup group;
    group.lr = 0.1;
    group.weight_decay = 0.1;
    Tensors all;
    for (std::int64_t i = 0; i < 70; ++i) {
      all.push_back(leaf_of(get(randn(g, dims({i == 5 ? 20003 : 1 + i * 7 % 50}))), t));
      group.parameters.emplace_back("p" + std::to_string(i), all.back());
    }
    const std::vector<Update> rules{Adam{}, Adam{.decoupled = false}, Sgd{}, Sgd{0.9, true}, Lion{}};
    for (std::size_t k = 0; k < rules.size(); ++k) {
      group.update = rules[k];
      const bool scaling = k % 2 == 1;  // with a loss scale that finds infinity in its second step
      auto optimiser = get(scaling ? Optimizer::create({group}, LossScaleOptions{.initial = 8, .interval = 1})
                                   : Optimizer::create({group}));
      for (int step = 0; step < 3; ++step) {
        compared.now("rule " + std::to_string(k) + " in " + name_of(t) + ", step " + std::to_string(step));
        Tensor loss = get(sum(get(mul(all[0], all[0]))));
        for (std::size_t i = 1; i < all.size(); ++i) {
          if (step == 0 && (i == 5 || i == 64)) continue;  // later than the others
          loss = get(add(loss, get(sum(get(mul(all[i], all[i]))))));
        }
        if (scaling && step == 1) loss = get(mul(loss, HUGE_VAL));
        get(backward(scaling ? get(optimiser.scaled(loss)) : loss));
        if (!scaling) read(get(clip_grad_norm(all, step == 1 ? 1e9 : 0.5)));
        get(optimiser.step());
      }
    }
    Tensors averages;
    for (const auto& p : all) averages.push_back(get(clone(p.detach())));
    const auto steps = get(zeros(g, {}, DType::i64));
    for (int i = 0; i < 3; ++i) {
      get(average_(averages, all, 0.5));
      get(average_(averages, all, 0.9, steps));
    }
    for (const auto& a : averages) read(a);
    for (const auto& p : all) read(p);
  }
  compared.check();
}

TEST_CASE("a training step of a language model, compiled", "[unit][cuda][checked]") {
  for (const auto products : {std::optional<DType>(), std::optional(DType::bf16), std::optional(DType::f16)}) {
    Compared compared;
    compared.now(products ? std::string("training, products in ") + name_of(*products) : "training");
    Graph& g = *compared.graph;
    auto modes = g.modes();
    modes.autocast = products;
    g.set_modes(modes);
    auto model = get(Gpt::make(g, {2, 2, 32, 16, 64}));
    auto optimiser = get(Optimizer::create({ParameterGroup{model.parameters, 1e-2, 0.1}}));
    const auto data = get(randint(g, 0, 8, dims({4, 17}), DType::u8));
    Compiled update(compared.graph);
    const auto x = get(contiguous(get(narrow(data, 1, 0, 16)))), y = get(contiguous(get(narrow(data, 1, 1, 16))));
    for (int i = 0; i < 4; ++i) {  // from the third on a plan is replayed
      if (get(update.begin({x, y}, {})) == Compiled::Next::replayed) {
        read(update.outputs()[0]);
        continue;
      }
      const auto loss = get(model.loss(update.arguments()[0], update.arguments()[1]));
      get(backward(loss));
      Tensors all;
      for (auto& [name, p] : model.parameters) all.push_back(p);
      if (!products) get(clip_grad_norm(all, 1));  // without it AdamW is given the half gradients themselves
      get(optimiser.step());
      read(get(update.end({loss}))[0]);
    }
    compared.check();
  }
}

TEST_CASE("indices out of range have the CPU's error text", "[unit][cuda][checked]") {
  Compared compared;
  Graph& g = *compared.graph;
  const auto a = get(zeros(g, dims({2, 3})));
  const auto i = get(from_numbers(g, dims({1, 2}), DType::i32, {0, 3}));
  const auto fails = [&](Result<Tensor> r) {
    const auto got = g.read_blocking(get(std::move(r)));
    CHECK_FALSE(got.ok());
  };
  fails(gather(a, 1, i));
  fails(scatter(a, 0, i, get(zeros(g, dims({1, 2}))), true));
  fails(scatter(a, 0, i, get(zeros(g, dims({1, 2})))));
  const auto many =
      get(from_numbers(g, dims({2, 9}), DType::i64, {0, 1, 2, 1, 0, 2, 1, 1, 0, 2, 1, 0, 7, 1, 2, 0, 0, 1}));
  fails(scatter(a, 1, many, get(ones(g, dims({2, 9})))));
  fails(index_select(a, 1, get(from_numbers(g, dims({1}), DType::i8, {-1}))));
  fails(embedding(a, get(from_numbers(g, dims({2}), DType::i64, {1, 2}))));
  fails(cross_entropy(a, get(from_numbers(g, dims({2}), DType::i64, {1, 3}))));
  fails(multinomial(get(from_numbers(g, dims({2, 2}), DType::f32, {1, 1, 1, -1}))));
  fails(multinomial(get(from_numbers(g, dims({2, 2}), DType::f32, {1, 1, 0, 0}))));
  for (const DType t : integers) {
    const auto whole = get(ones(g, dims({4}), t));
    fails(floor_divide(whole, get(zeros(g, dims({4}), t))));
    fails(remainder(whole, 0));
  }
  compared.check();
}

}  // namespace rille::tensor
