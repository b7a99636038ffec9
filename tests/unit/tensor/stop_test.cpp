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
    if (Graph* g = stopped_by_fifth) g->stop(cancelled());
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

TEST_CASE("stop: a synchronize afterwards has no error to tell", "[unit][tensor]") {
  auto g = new_graph();
  const Tensor x = get(exp(get(ones(*g, dims({4}), DType::f32))));
  g->stop(cancelled());
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

}  // namespace rille::tensor
