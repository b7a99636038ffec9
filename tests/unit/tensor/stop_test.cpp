// Ending work: what was recorded before is skipped or broken off, what is recorded afterwards runs.
#include <atomic>

#include "fixture.hpp"
#include "kernels/kernels.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {
namespace {

Error cancelled() {
  Error e = make_error(ErrorKind::cancelled, "the run was cancelled");
  e.code = "why";
  return e;
}

std::atomic<int> products{0};
std::atomic<Graph*> stopped_by_fifth{nullptr};

// Computes; the fifth product ends the work, as another thread would while it is computed.
void counted(const Op& op, const kernels::Call& call) {
  if (op.id == OpId::matmul && ++products == 5)
    if (Graph* g = stopped_by_fifth) g->work()->end(cancelled());
  op.kernel(call);
}

struct Counting {
  explicit Counting(Graph& g) : graph(g) {
    products = 0;
    stopped_by_fifth = &g;
    graph.impl().queue->instead = counted;
  }
  ~Counting() { graph.impl().queue->instead = nullptr; }
  Graph& graph;
};

}  // namespace

TEST_CASE("stop: of a thousand products those that were recorded before do not run", "[unit][tensor]") {
  auto g = new_graph();
  const Counting counting(*g);
  Tensor x = get(ones(*g, dims({8, 8}), DType::f32)), untouched = get(ones(*g, dims({4}), DType::f32));
  const Tensor before = get(mul(untouched, 3.0));
  for (int i = 0; i < 1000; ++i) x = get(matmul(x, x));
  get(add_(untouched, get(narrow(get(flatten(x)), 0, 0, 4)), 1));
  const auto read = g->read_blocking(x);
  REQUIRE_FALSE(read);
  CHECK(read.error().kind == ErrorKind::cancelled);
  CHECK(read.error().code == "why");
  CHECK(read.error().message.find("the run was cancelled") != std::string::npos);
  CHECK(products <= 5);
  CHECK(numbers(before) == std::vector<double>(4, 3));                          // computed before the end
  CHECK(numbers(untouched) == std::vector<double>(4, 1));                       // the update did not happen
  CHECK(numbers(get(add(untouched, untouched))) == std::vector<double>(4, 2));  // recorded after the end
}

TEST_CASE("stop: a synchronize afterwards returns no error", "[unit][tensor]") {
  auto g = new_graph();
  const Tensor x = get(exp(get(ones(*g, dims({4}), DType::f32))));
  g->work()->end(cancelled());
  get(g->synchronize_blocking());
  CHECK_FALSE(g->read_blocking(x));
}

TEST_CASE("stop: a compiled call ends between its operations", "[unit][tensor]") {
  auto g = new_graph();
  const Tensor w = get(full(*g, dims({8, 8}), 0.5, DType::f32)), sum = get(zeros(*g, dims({8, 8}), DType::f32));
  const auto call = [&](Compiled& c, const Tensor& x) -> Result<std::vector<Tensor>> {
    RILLE_TRY(const auto next, c.begin({x}));
    if (next == Compiled::Next::replayed) return c.outputs();
    Tensor y = c.arguments()[0];
    for (int i = 0; i < 10; ++i) { RILLE_TRY(y, matmul(y, w)); }
    Tensor total = sum;
    RILLE_CHECK(add_(total, y, 1));
    return c.end({y});
  };
  Compiled compiled(g);
  const Tensor x = get(ones(*g, dims({8, 8}), DType::f32));
  for (int i = 0; i < 3; ++i) get(call(compiled, x));
  const auto kept = numbers(sum);
  {
    const Counting counting(*g);
    const auto out = get(call(compiled, x));
    const auto read = g->read_blocking(out[0]);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == "why");
    CHECK(products <= 5);
  }
  CHECK(numbers(sum) == kept);
  CHECK(numbers(get(call(compiled, x))[0]).size() == 64);
}

namespace {

OpId ending = OpId::matmul;
std::shared_ptr<Work> ended_work;

// Computes; the work ends just before the operation `ending`.
void ended_at(const Op& op, const kernels::Call& call) {
  if (op.id == ending && ended_work) std::exchange(ended_work, nullptr)->end(cancelled());
  op.kernel(call);
}

struct Ending {
  Ending(Graph& g, OpId at) : graph(g) {
    ending = at;
    ended_work = g.work();
    graph.impl().queue->instead = ended_at;
  }
  ~Ending() { graph.impl().queue->instead = nullptr; }
  Graph& graph;
};

// Two parameters with rules of their own, and a training step that may be compiled.
struct StoppedTraining {
  explicit StoppedTraining(const Update& first)
      : p(parameter()), q(parameter()), x(get(ones(*g, dims({4, 4}), DType::f32))),
        opt(get(Optimizer::create({{{{"p", p}}, 0.1, 0, first}, {{{"q", q}}, 0.1, 0, Adam{}}}))), compiled(g) {}
  Tensor parameter() const {
    auto t = get(full(*g, dims({4, 4}), 0.5, DType::f32));
    get(t.set_requires_grad(true));
    return t;
  }
  void step(bool compile) {
    if (compile && get(compiled.begin({x})) == Compiled::Next::replayed) return;
    const Tensor in = compile ? compiled.arguments()[0] : x;
    get(backward(get(sum(get(matmul(get(matmul(in, p)), q))))));
    get(opt.step());
    if (compile) get(compiled.end({}));
  }
  Result<HostData> state(const std::string& name) const {
    for (const auto& [known, t] : opt.state())
      if (known == name) return g->read_blocking(t);
    return make_error(ErrorKind::internal, name);
  }
  std::shared_ptr<Graph> g = new_graph();
  Tensor p, q, x;
  Optimizer opt;
  Compiled compiled;
};

}  // namespace

TEST_CASE("stop: a step of an optimiser that has begun is done to its end", "[unit][tensor]") {
  for (const bool compile : {false, true}) {
    StoppedTraining whole(Sgd{.momentum = 0.5}), cut(Sgd{.momentum = 0.5});
    for (int i = 0; i < 3; ++i) whole.step(compile), cut.step(compile);
    get(cut.g->synchronize_blocking());
    {
      const Ending ends(*cut.g, OpId::increment);
      whole.step(compile), cut.step(compile);
      get(cut.g->synchronize_blocking());
      CHECK_FALSE(ended_work);
    }
    CHECK(bits(cut.p) == bits(whole.p));
    CHECK(bits(cut.q) == bits(whole.q));
    CHECK(get(cut.state("step")).number(0) == 4);
    CHECK(get(cut.state("exp_avg.q")).bytes == get(whole.state("exp_avg.q")).bytes);
  }
}

TEST_CASE("stop: before a step has changed a tensor, none of it happens", "[unit][tensor]") {
  for (const bool compile : {false, true}) {
    StoppedTraining cut(Sgd{.momentum = 0.5});
    for (int i = 0; i < 3; ++i) cut.step(compile);
    const auto p = bits(cut.p), q = bits(cut.q);
    {
      const Ending ends(*cut.g, OpId::matmul);
      cut.step(compile);
      get(cut.g->synchronize_blocking());
    }
    CHECK(bits(cut.p) == p);
    CHECK(bits(cut.q) == q);
    CHECK(get(cut.state("step")).number(0) == 3);
  }
}

TEST_CASE("stop: what a step that takes long had changed has no value any more", "[unit][tensor]") {
  for (const bool compile : {false, true}) {
    StoppedTraining cut(Muon{.precision = DType::f32});
    for (int i = 0; i < 3; ++i) cut.step(compile);
    const auto p = bits(cut.p), q = bits(cut.q);
    {
      const Ending ends(*cut.g, OpId::average);  // changes the momentum; the matrix products come after it
      cut.step(compile);
      get(cut.g->synchronize_blocking());
      CHECK_FALSE(ended_work);
    }
    for (const char* name : {"step", "momentum.p", "step.q"}) {
      const auto read = cut.state(name);
      REQUIRE_FALSE(read);
      CHECK(read.error().code == "why");
    }
    CHECK(bits(cut.p) == p);
    CHECK(bits(cut.q) == q);
  }
}

TEST_CASE("stop: other work continues", "[unit][tensor]") {
  auto g = new_graph();
  const auto mine = g->work();
  const Tensor x = get(exp(get(zeros(*g, dims({4}), DType::f32))));
  g->set_work(std::make_shared<Work>());
  const Tensor y = get(exp(get(zeros(*g, dims({4}), DType::f32))));
  mine->end(cancelled());
  CHECK_FALSE(g->read_blocking(x));
  CHECK(numbers(y) == std::vector<double>(4, 1));
}

namespace {

// One call of a kernel whose work was ended before it began.
struct Ended {
  std::uint64_t count = 1;
  kernels::LaneState lane;
  explicit Ended() { lane.heed({&count, 0}); }
};

std::vector<std::shared_ptr<void>> memory;

kernels::View view(std::initializer_list<std::int64_t> sizes, DType dtype = DType::f32) {
  kernels::View v;
  v.dtype = dtype;
  v.shape = dims(sizes);
  v.strides = contiguous_strides(v.shape);
  memory.emplace_back(std::calloc(std::size_t(v.count()) + 1, size_bytes(dtype)), std::free);
  v.data = memory.back().get();
  return v;
}

using Views = std::vector<kernels::View>;

bool looks(kernels::Kernel kernel, Views in, Views out, const kernels::Attrs& attrs = {}) {
  Ended ended;
  char text[kernels::Call::error_bytes] = {};
  kernels::Call call;
  call.in = in.data(), call.n_in = int(in.size());
  call.out = out.data(), call.n_out = int(out.size());
  call.attrs = &attrs, call.lane = &ended.lane, call.error = text;
  kernel(call);
  memory.clear();
  CHECK(std::string(text).empty());
  return ended.lane.cut_short();
}

kernels::Attrs integers(std::initializer_list<std::int64_t> values) {
  kernels::Attrs a;
  int k = 0;
  for (auto v : values) a.i[k++] = v;
  return a;
}

}  // namespace

TEST_CASE("stop: every kernel that may run long looks", "[unit][tensor]") {
  using namespace kernels;
  constexpr std::int64_t n = 1000;
  CHECK(looks(&kernels::exp, {view({n, n})}, {view({n, n})}));
  CHECK(looks(&kernels::add, {view({n}), view({n})}, {view({n})}));
  CHECK(looks(&kernels::where, {view({n}, DType::boolean), view({n}), view({n})}, {view({n})}));
  CHECK(looks(&kernels::copy, {view({n})}, {view({n})}));
  CHECK(looks(&kernels::copy, {view({n}, DType::bf16)}, {view({n})}));
  CHECK(looks(&kernels::fill, {}, {view({n})}));
  CHECK(looks(&kernels::arange, {}, {view({n})}));
  CHECK(looks(&kernels::normal, {}, {view({n})}));
  CHECK(looks(&kernels::uniform, {}, {view({n})}));
  CHECK(looks(&kernels::sum, {view({n, n})}, {view({n})}, integers({1})));
  CHECK(looks(&kernels::amax, {view({n, n})}, {view({n})}, integers({1})));
  CHECK(looks(&kernels::argmax, {view({n, n})}, {view({n}, DType::i64)}, integers({1})));
  CHECK(looks(&kernels::prod, {view({n, n})}, {view({n})}, integers({1})));
  CHECK(looks(&kernels::cumsum, {view({n, n})}, {view({n, n})}));
  CHECK(looks(&kernels::softmax, {view({n, n})}, {view({n, n})}));
  CHECK(looks(&kernels::log_softmax, {view({n, n})}, {view({n, n})}));
  CHECK(looks(&kernels::layer_norm, {view({n, n}), {}, {}}, {view({n, n}), view({n}), view({n})}));
  CHECK(looks(&kernels::rms_norm, {view({n, n}), view({n})}, {view({n, n}), view({n})}));
  CHECK(looks(&kernels::batch_norm, {view({2, 8, n}), {}, {}}, {view({2, 8, n}), view({8}), view({8})}));
  CHECK(looks(&kernels::max_pool, {view({1, 1, n, n})}, {view({1, 1, 500, 500}), view({1, 1, 500, 500}, DType::i32)},
              integers({2, 2, 2, 2, 0, 0, 1, 1})));
  CHECK(looks(&kernels::embedding, {view({n, 8}), view({n}, DType::i64)}, {view({n, 8})}));
  CHECK(looks(&kernels::embedding_grad, {view({n, 8}), view({n}, DType::i64)}, {view({n, 8})}));
  CHECK(looks(&kernels::cross_entropy, {view({n, 8}), view({n}, DType::i64)}, {view({}), view({n, 2})}));
  CHECK(looks(&kernels::gather, {view({n, 8}), view({n, 8}, DType::i64)}, {view({n, 8})}, integers({1})));
  CHECK(looks(&kernels::index_select, {view({n, 8}), view({n}, DType::i64)}, {view({n, 8})}));
  CHECK(looks(&kernels::index_add, {view({n, 8}), view({n}, DType::i64)}, {view({n, 8})}));
  CHECK(looks(&kernels::sort, {view({1 << 21})}, {view({1 << 21}), view({1 << 21}, DType::i64)}));
  CHECK(looks(&kernels::sort, {view({1 << 21})}, {view({5}), view({5}, DType::i64)}));
  CHECK(looks(&kernels::tril, {view({n, n})}, {view({n, n})}));
  CHECK(looks(&kernels::attention, {view({1, 2, 256, 32}), view({1, 2, 256, 32}), view({1, 2, 256, 32})},
              {view({1, 2, 256, 32}), view({1, 2, 256})}));
  CHECK(
      looks(&kernels::matmul, {view({64, 64}, DType::f64), view({64, 64}, DType::f64)}, {view({64, 64}, DType::f64)}));
  CHECK(looks(&kernels::convolution, {view({1, 2, 32, 32}, DType::f64), view({2, 2, 3, 3}, DType::f64)},
              {view({1, 2, 30, 30}, DType::f64)}, integers({1, 1, 0, 0, 1, 1, 1})));
}

namespace {

kernels::View drawn(std::initializer_list<std::int64_t> sizes) {
  const kernels::View v = view(sizes);
  for (std::int64_t i = 0; i < v.count(); ++i) v.ptr<float>()[i] = float((i * 7919 + 13) % 101 - 50) / 50;
  return v;
}

// Calls the kernel as a whole and in parts; whether the outputs agree but for rounding.
bool same_in_parts(kernels::Kernel kernel, Views in, const std::vector<std::initializer_list<std::int64_t>>& sizes,
                   const kernels::Attrs& attrs = {}) {
  const std::uint64_t none = 0;
  std::vector<Views> outs(2);
  for (const bool parts : {false, true}) {
    for (const auto& one : sizes) outs[parts].push_back(view(one));
    kernels::LaneState lane;
    lane.heed({&none, 0, parts ? 1000.0 : 0});
    char text[kernels::Call::error_bytes] = {};
    kernels::Call call;
    call.in = in.data(), call.n_in = int(in.size());
    call.out = outs[parts].data(), call.n_out = int(outs[parts].size());
    call.attrs = &attrs, call.lane = &lane, call.error = text;
    kernel(call);
    CHECK(std::string(text).empty());
  }
  bool same = true;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    double largest = 0, apart = 0;
    for (std::int64_t i = 0; i < outs[0][k].count(); ++i) {
      const double a = outs[0][k].ptr<float>()[i], b = outs[1][k].ptr<float>()[i];
      largest = std::max(largest, std::abs(a)), apart = std::max(apart, std::abs(a - b));
    }
    same = same && largest > 0 && apart <= 1e-5 * largest;
  }
  return same;
}

}  // namespace

TEST_CASE("stop: products and convolutions in parts give what the whole gives", "[unit][tensor]") {
  using namespace kernels;
  CHECK(same_in_parts(&kernels::matmul, {drawn({2500, 96}), drawn({96, 64})}, {{2500, 64}}));
  CHECK(same_in_parts(&kernels::matmul, {drawn({64, 96}), drawn({96, 2500})}, {{64, 2500}}));
  CHECK(same_in_parts(&kernels::matmul, {drawn({64, 96}), drawn({96, 2500}), drawn({2500})}, {{64, 2500}}));
  CHECK(same_in_parts(&kernels::matmul, {drawn({2500, 96}), drawn({96, 64}), drawn({64})}, {{2500, 64}}));
  CHECK(same_in_parts(&kernels::matmul, {drawn({5, 64, 32}), drawn({5, 32, 48})}, {{5, 64, 48}}));
  View shared = drawn({1, 32, 48});
  shared.shape[0] = 5, shared.strides[0] = 0;  // broadcast over the batch
  CHECK(same_in_parts(&kernels::matmul, {drawn({5, 64, 32}), shared}, {{5, 64, 48}}));
  const Attrs plain = integers({1, 1, 1, 1, 1, 1, 1});
  const View x = drawn({5, 4, 12, 12}), w = drawn({6, 4, 3, 3}), y = drawn({5, 6, 12, 12});
  CHECK(same_in_parts(&kernels::convolution, {x, w, drawn({6})}, {{5, 6, 12, 12}}, plain));
  CHECK(same_in_parts(&kernels::convolution_grad_input, {y, w}, {{5, 4, 12, 12}}, plain));
  CHECK(same_in_parts(&kernels::convolution_grad_weight, {x, y}, {{6, 4, 3, 3}, {6}}, plain));
  memory.clear();
}

}  // namespace rille::tensor
