// The real plug-in over the stand-in driver: properties, transfers, operations, compiled functions, errors, and what is
// left behind.
#include <cstring>
#include <future>
#include <map>
#include <numeric>

#include "runtime/compute/device/executor.hpp"
#include "runtime/compute/tensor/record.hpp"
#include "standin.hpp"

namespace rille::tensor {
namespace {

using test::Standin;
using test::standin::Options;

Tensor counted(Graph& g, std::int64_t n, double from, double step = 1) {
  std::vector<double> v(std::size_t(n), 0);
  for (std::int64_t i = 0; i < n; ++i) v[std::size_t(i)] = from + step * double(i % 13);
  return get(from_numbers(g, dims({n}), DType::f32, v));
}

TEST_CASE("a CUDA device reports its properties", "[cuda]") {
  Options o;
  o.cards = 2;
  const Standin standin(o);
  const auto cards = get(device::cuda_cards());
  REQUIRE(cards.size() == 2);
  CHECK(std::string(cards[1].info.uuid) == "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
  const auto dev = standin.device("cuda:1");
  CHECK(dev->name() == "cuda:1");
  CHECK(dev->kind() == device::Kind::cuda);
  CHECK(dev->description() == "Stand-in GPU, sm_90, 2 multiprocessors, 1.1 GB");
  CHECK(standin.device(("cuda:" + std::string(cards[1].info.uuid)).c_str())->name() == "cuda:1");
  const auto [free_bytes, total_bytes] = get(dev->card_memory());
  CHECK(total_bytes == 1 << 30);
  CHECK(free_bytes < total_bytes);
  const auto none = device::CudaDevice::open("cuda:7");
  REQUIRE_FALSE(none);
  CHECK(none.error().kind == ErrorKind::device);
  CHECK(none.error().message == "there is no device 'cuda:7' here");
  CHECK(none.error().hint == "there are cuda:0 (Stand-in GPU), cuda:1 (Stand-in GPU)");
  const auto strange = device::CudaDevice::open("tpu");
  REQUIRE_FALSE(strange);
  CHECK(strange.error().kind == ErrorKind::invalid);
}

TEST_CASE("values come back from a CUDA device as they went there", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  for (const std::int64_t n : {1, 5, 4096, 4097, 3'000'000}) {  // one slot, several, and rings of both sizes
    std::vector<float> v(static_cast<std::size_t>(n));
    std::iota(v.begin(), v.end(), float(n));
    const auto t = get(from_bytes(*g, dims({n}), DType::f32, v.data(), v.size() * 4));
    const auto back = get(g->read_blocking(t));
    CHECK(std::memcmp(back.bytes.data(), v.data(), v.size() * 4) == 0);
  }
  CHECK(numbers(get(from_numbers(*g, dims({2}), DType::bf16, {1.5, -3}))) == std::vector<double>{1.5, -3});
  CHECK(get(g->read_blocking(get(zeros(*g, dims({0, 3}))))).bytes.empty());
}

TEST_CASE("operations on a CUDA device give what the CPU gives", "[cuda]") {
  const Standin standin;
  const auto program = [](Graph& g) {
    Tensor a = get(from_numbers(g, dims({2, 3}), DType::f32, {1, -2, 3, -4, 5, 0.5}));
    Tensor b = get(from_numbers(g, dims({3}), DType::f32, {2, 4, 8}));
    std::vector<Tensor> out = {get(add(a, b)), get(mul(get(permute(a, dims({1, 0}))), 3)),
                               get(relu(a)),   get(maximum(a, b)),
                               get(lt(a, b)),  get(cast(a, DType::i32))};
    get(add_(a, b, 0.5));
    out.push_back(get(cat({a, a}, 0)));
    std::vector<std::vector<std::byte>> all;
    for (const auto& t : out) all.push_back(bits(t));
    return all;
  };
  CHECK(program(*standin.graph()) == program(*new_graph()));
}

TEST_CASE("an operation without a CUDA kernel is refused", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  auto* executor = g->device()->executor();
  CHECK(executor->knows(OpId::add));
  CHECK(executor->knows(OpId::launch));
  REQUIRE_FALSE(executor->knows(OpId::reshape));  // a view runs nothing
  const auto refused = executor->run(OpId::reshape, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::device);
  CHECK(refused.error().message == "reshape has no CUDA kernel in this build");
}

TEST_CASE("what a kernel finds wrong comes with the next read, once", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  const auto a = get(from_numbers(*g, dims({2}), DType::i64, {7, 8}));
  const auto z = get(from_numbers(*g, dims({2}), DType::i64, {2, 0}));
  const auto read = g->read_blocking(get(floor_divide(a, z)));
  REQUIRE_FALSE(read);
  CHECK(read.error().kind == ErrorKind::invalid);
  CHECK(read.error().message == "floor_divide: i64 divided by zero");
  CHECK(numbers(get(add(a, a))) == std::vector<double>{14, 16});
}

TEST_CASE("a compiled function on a CUDA device is captured once and replayed", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  Tensor w = counted(*g, 8, 1);
  const auto plain = new_graph();
  Tensor v = counted(*plain, 8, 1);
  Compiled step(g);
  for (int i = 0; i < 6; ++i) {
    const auto data = counted(*g, 16, i), twin = counted(*plain, 16, i);
    const auto x = get(narrow(data, 0, i, 8)), y = get(narrow(twin, 0, i, 8));  // a window that moves
    Tensor out;
    if (get(step.begin({x})) == Compiled::Next::call) {
      get(add_(w, step.arguments()[0], 0.5));
      out = get(step.end({get(mul(w, get(add(step.arguments()[0], 1))))}))[0];
    } else {
      out = step.outputs()[0];
    }
    get(add_(v, y, 0.5));
    CHECK(bits(out) == bits(get(mul(v, get(add(y, 1))))));
  }
  CHECK(bits(w) == bits(v));
  CHECK(standin.report().graph_launches == 4);  // calls 1 and 2 are plain, the third captures
}

TEST_CASE("a captured sequence keeps the working memory that it was captured with", "[cuda]") {
  const auto program = [](const std::shared_ptr<Graph>& g) {
    const Tensor index = get(arange(*g, 0, 16, 1)), ones = get(full(*g, dims({16}), 1, DType::f32));
    std::vector<double> out;
    Compiled total(g);
    for (int i = 0; i < 8; ++i) {
      const auto x = counted(*g, 16'384, i);  // its sum goes through partial sums in working memory
      if (get(total.begin({x})) == Compiled::Next::call) get(total.end({get(sum(total.arguments()[0]))}));
      out.push_back(numbers(total.outputs()[0])[0]);
      if (i != 5) continue;  // the third call captures; this takes more than there was
      const auto large = get(scatter(get(zeros(*g, dims({400'000}))), 0, index, ones));
      out.push_back(numbers(get(sum(large)))[0]);
    }
    return out;
  };
  const Standin standin;
  CHECK(program(standin.graph()) == program(new_graph()));
  CHECK(std::string(standin.report().wrong).empty());
  CHECK(standin.report().graph_launches == 6);
}

// The pieces of a sort's memory: the first run's come from more than one block, and the next one is captured.
TEST_CASE("an operation is captured after one plain run of it, whatever memory it wants", "[cuda]") {
  const Standin standin;
  const auto dev = standin.device();
  auto& executor = *dev->executor();
  constexpr std::int64_t n = 300'000;
  std::vector<float> values(n);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float((i * 7919) % values.size());
  const auto x = get(dev->allocate(n * 4)), y = get(dev->allocate(n * 4)), where = get(dev->allocate(n * 8));
  get(dev->upload(x, values.data(), n * 4));
  const kernels::View in[] = {{x.data(), DType::f32, dims({n}), dims({1})}};
  const kernels::View out[] = {{y.data(), DType::f32, dims({n}), dims({1})},
                               {where.data(), DType::i64, dims({n}), dims({1})}};
  const kernels::Attrs attrs;
  const kernels::Call call{in, 1, out, 2, &attrs};
  get(executor.run(OpId::sort, call));
  get(executor.begin_capture());
  get(executor.run(OpId::sort, call));
  const auto captured = get(executor.end_capture());
  get(executor.replay(*captured, 1, 1));
  get(dev->download(values.data(), y.data(), n * 4));
  CHECK((values[0] == 0 && values[n - 1] == n - 1));
  CHECK(std::string(standin.report().wrong) == "");
}

TEST_CASE("what libraries decline is counted, with the first reason", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  const auto told = [&] {
    std::map<std::string, device::Fallback> out;
    for (auto& f : g->device()->executor()->fallbacks()) out[f.library + "/" + f.operation] = f;
    return out;
  };
  const auto product = [&](DType t) {
    const Tensor a = get(full(*g, dims({4, 4}), 1, t));
    return numbers(get(matmul(a, a)))[0];
  };
  CHECK(product(DType::f32) == 4);
  CHECK(told().empty());
  {
    const test::NoHalf declining;
    for (int i = 0; i < 3; ++i) CHECK(product(DType::bf16) == 4);
  }
  auto found = told();
  REQUIRE(found.size() == 1);
  const auto& f = found["cuBLASLt/matmul"];
  CHECK(f.calls == 3);
  CHECK(f.why.find("no algorithm (status 15) for m 4, n 4, k 4, 1 batches, types 14 and 14") == 0);
  ::setenv("RILLE_CUDA_WITHOUT", "cufft", 1);
  numbers(get(fft(get(zeros(*g, dims({128, 2}))))));
  ::unsetenv("RILLE_CUDA_WITHOUT");
  found = told();
  REQUIRE(found.size() == 2);
  CHECK(found["cuFFT/fourier"].why == "the variable RILLE_CUDA_WITHOUT excludes it");
}

TEST_CASE("an argument that a compiled function writes is written", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  Tensor x = counted(*g, 4, 0);
  Compiled twice(g);
  for (int i = 0; i < 5; ++i) {
    if (get(twice.begin({x})) != Compiled::Next::call) continue;
    Tensor inside = twice.arguments()[0];
    get(mul_(inside, 2));
    get(twice.end({}));
  }
  CHECK(numbers(x) == std::vector<double>{0, 32, 64, 96});
}

TEST_CASE("a device that runs out of memory says what is live", "[cuda]") {
  Options o;
  o.memory_bytes = 8 << 20;
  const Standin standin(o);
  const auto g = standin.graph();
  const auto kept = get(zeros(*g, dims({1 << 20})));
  get(g->synchronize_blocking());
  const auto big = get(zeros(*g, dims({2 << 20})));
  const auto read = g->read_blocking(big);
  REQUIRE_FALSE(read);
  CHECK(read.error().kind == ErrorKind::memory);
  CHECK(read.error().message.find("cuda:0: no memory for 8.4 MB: live tensors use 4.2 MB") == 0);
  CHECK(read.error().hint.find("live by size: 1 x 4.2 MB") == 0);
}

TEST_CASE("working memory is counted: in the peak, against the limit, and where memory is out", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  const auto x = counted(*g, 65'536, 0);
  CHECK(numbers(get(sum(x, {}, false))).size() == 1);
  auto dev = g->device();
  const auto m = dev->memory();
  CHECK(m.working_bytes > 0);
  CHECK(m.peak_bytes >= m.live_bytes + m.working_bytes);
  dev->reset_peak();
  CHECK(dev->memory().peak_bytes == dev->memory().live_bytes + m.working_bytes);
  dev->release_cache();
  dev->set_memory_limit(dev->memory().live_bytes + m.working_bytes + 1024);
  const auto more = dev->allocate(65'536);
  REQUIRE_FALSE(more);
  CHECK_THAT(more.error().message, Catch::Contains("of working memory"));
  CHECK(dev->allocate(1024));
}

TEST_CASE("working memory makes the kept memory give way", "[cuda]") {
  Options o;
  o.memory_bytes = (7 << 19) + (4 << 10);  // the kept block, and hardly more
  const Standin standin(o);
  const auto g = standin.graph();
  const auto a = get(from_numbers(*g, dims({2, 3}), DType::f32, {3, 1, 2, 6, 5, 4}));
  get(g->read_blocking(get(full(*g, dims({900'000}), 1))));
  get(g->synchronize_blocking());  // the lane has let go of it
  CHECK(g->device()->memory().cached_bytes > 3 << 20);
  CHECK(numbers(get(matmul(a, get(permute(a, dims({1, 0})))))) == std::vector<double>{14, 31, 31, 77});
  CHECK(g->device()->memory().cached_bytes < 1 << 20);
}

TEST_CASE("what cannot be captured goes on plainly", "[cuda]") {
  Options o;
  o.fail_function = GENERATE("cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags");
  INFO(o.fail_function);
  o.fail_at = 1;
  o.fail_code = 801;
  const Standin standin(o);
  const auto g = standin.graph();
  Compiled twice(g);
  for (int i = 0; i < 6; ++i) {
    const auto x = counted(*g, 4, i);
    const auto next = get(twice.begin({x}));
    const auto out =
        next == Compiled::Next::call ? get(twice.end({get(mul(twice.arguments()[0], 2))}))[0] : twice.outputs()[0];
    CHECK(numbers(out)[0] == 2 * i);
    const bool told = twice.info().one_by_one.find("not captured as one: cuda:0: ") == 0;
    CHECK(told == (i >= 2));  // the third call captures
  }
  CHECK(twice.info().one_by_one.find("(801)") != std::string::npos);
  CHECK(standin.report().graph_launches == 0);
}

TEST_CASE("a device that is lost says so, and why, from then on", "[cuda]") {
  Options o;
  o.fail_function = "cuLaunchKernel";
  o.fail_at = 2;
  o.fail_code = 700;
  const Standin standin(o);
  {
    const auto g = standin.graph();
    const auto a = counted(*g, 4, 1);
    CHECK(numbers(get(add(a, a))) == std::vector<double>{2, 4, 6, 8});
    for (int i = 0; i < 2; ++i) {
      const auto read = g->read_blocking(get(mul(a, a)));
      REQUIRE_FALSE(read);
      CHECK(read.error().kind == ErrorKind::device);
      CHECK(read.error().code == "cuda_700");
      CHECK(read.error().message.find("CUDA_ERROR_ILLEGAL_ADDRESS (700)") != std::string::npos);
      CHECK(read.error().hint.find("this process can no longer use the device: start it again") == 0);
    }
    const auto more = g->device()->allocate(1 << 20);
    REQUIRE_FALSE(more);
    CHECK(more.error().kind == ErrorKind::device);  // not "no memory"
  }
}

TEST_CASE("a closed device leaves nothing in the driver", "[cuda]") {
  const Standin standin;
  {
    const auto g = standin.graph();
    Tensor w = counted(*g, 8, 1);
    Compiled step(g);
    for (int i = 0; i < 5; ++i) {
      const auto x = counted(*g, 8, i);
      if (get(step.begin({x})) != Compiled::Next::call) continue;
      get(add_(w, step.arguments()[0]));
      get(step.end({get(mul(w, 2))}));
    }
    get(g->synchronize_blocking());
    CHECK(standin.report().graphs == 1);
    CHECK(standin.report().live_bytes > 0);
  }
  const auto left = standin.left();
  CHECK(left.live_bytes == 0);
  CHECK(left.pinned_bytes == 0);
  CHECK(left.streams == 0);
  CHECK(left.events == 0);
  CHECK(left.graphs == 0);
  CHECK(left.modules == 0);
  CHECK(left.contexts == 0);
  CHECK(std::string(left.wrong) == "");
}

ProfileReport profiled(Graph& g, const std::function<void()>& fn) {
  g.profile_start();
  fn();
  std::promise<Result<ProfileReport>> done;
  g.profile_stop([&](Result<ProfileReport> r) { done.set_value(std::move(r)); });
  return get(done.get_future().get());
}

TEST_CASE("a profile on a CUDA device is of its own records", "[cuda]") {
  const Standin standin;
  const auto g = standin.graph();
  const auto a = counted(*g, 64, 1), b = counted(*g, 4096, 2);
  for (int i = 0; i < 2; ++i) {  // a profile leaves nothing behind
    const auto report = profiled(*g, [&] {
      get(g->read_blocking(get(add(get(mul(a, a)), a))));
      get(g->read_blocking(get(add(b, counted(*g, 4096, 3)))));
    });
    CHECK(report.timed_by == "cupti");
    REQUIRE(report.rows.size() == 3);
    for (const auto& r : report.rows) CHECK((r.calls == 1 && r.ns > 0));
    std::map<std::string, KernelRow> kernels;
    for (const auto& k : report.kernels) kernels[k.operations + "/" + k.name] = k;
    const auto& adds = kernels["add/add_f32"];
    CHECK((adds.calls == 2 && adds.ns > 0 && adds.cost.bytes == 3 * 4 * (64 + 4096)));
    CHECK(kernels["mul/mul_f32"].calls == 1);
    CHECK(kernels["/copy in"].cost.bytes == 4096 * 4);
    CHECK(kernels["/copy out"].calls >= 2);
  }
}

TEST_CASE("without CUPTI a profile times each operation by events, and says so", "[cuda]") {
  ::setenv("RILLE_CUDA_WITHOUT", "cufft,cupti", 1);
  const Standin standin;
  const auto g = standin.graph();
  const auto a = counted(*g, 64, 1);
  const auto report = profiled(*g, [&] { get(g->read_blocking(get(add(get(mul(a, a)), a)))); });
  ::unsetenv("RILLE_CUDA_WITHOUT");
  CHECK((report.timed_by == "events" && report.why == "RILLE_CUDA_WITHOUT excludes CUPTI" && report.kernels.empty()));
  REQUIRE(report.rows.size() == 2);
  for (const auto& r : report.rows) CHECK((r.calls == 1 && r.ns > 0));
}

}  // namespace
}  // namespace rille::tensor
