// How fast the tensor layer trains and multiplies on this machine. Run: bench_tensor
// [--benchmark_filter=...]. GptStep: forward, backward and AdamW of the byte-level GPT of the tutorial,
// compiled and eager; GFLOP/s by 6 N per token plus attention. Sgemm: through Tensor against oneDNN called
// directly on the same lane thread.
#include <benchmark/benchmark.h>

#include <future>

#include "kernels/gemm.hpp"
#include "runtime/compute/tensor/compile.hpp"
#include "tests/unit/tensor/gpt.hpp"

namespace rille::tensor {
namespace {

std::shared_ptr<Graph> new_graph() {
  static const auto lane = device::Lane::shared();
  auto g = *Graph::create(device::CpuDevice::create(lane));
  g->manual_seed(1);
  return g;
}

Dims two(std::int64_t a, std::int64_t b) {
  Dims d;
  d.push(a);
  d.push(b);
  return d;
}

void train(benchmark::State& state, GptConfig c, std::int64_t batch, std::int64_t context, bool compiled) {
  auto g = new_graph();
  auto model = *Gpt::make(*g, c);
  auto opt = *Optimizer::create({{model.parameters, 1e-3, 0.1}});
  const auto x = *randint(*g, 0, c.vocab, two(batch, context)), y = *randint(*g, 0, c.vocab, two(batch, context));
  Compiled update(g);
  const auto body = [&](const Tensor& ids, const Tensor& labels) {
    auto loss = *model.loss(ids, labels);
    if (!backward(loss) || !opt.step()) std::abort();
    return loss;
  };
  const auto step = [&] {
    Tensor loss;
    if (!compiled) {
      loss = body(x, y);
    } else if (*update.begin({x, y}) == Compiled::Next::call) {
      loss = (*update.end({body(update.arguments()[0], update.arguments()[1])}))[0];
    } else {
      loss = update.outputs()[0];
    }
    benchmark::DoNotOptimize(*g->item_blocking(loss));
  };
  for (int i = 0; i < 4; ++i) step();
  for (auto _ : state) step();
  double n = 0;
  for (const auto& [name, p] : model.parameters)
    if (name != "wpe") n += double(p.count());
  const double tokens = double(batch * context),
               flops = 6 * n * tokens + 6.0 * double(c.layers * c.width * context) * tokens;
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9 * double(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["arena_MB"] = double(update.info().arena_bytes) * 1e-6;
  state.counters["peak_MB"] = double(g->device()->memory().peak_bytes) * 1e-6;
}

void GptStep(benchmark::State& state) { train(state, {}, 16, 128, state.range(0) == 1); }
void Gpt2Step(benchmark::State& state) { train(state, {12, 12, 768, 1024, 50304}, 4, 64, true); }

void SgemmTensor(benchmark::State& state) {
  auto g = new_graph();
  const auto m = state.range(0), n = state.range(1), k = state.range(2);
  const auto a = *randn(*g, two(m, k)), b = *randn(*g, two(n, k));
  for (auto _ : state) {
    NoGrad guard(*g);
    const auto c = *linear(a, b);
    benchmark::DoNotOptimize(c);
    benchmark::DoNotOptimize(g->synchronize_blocking().ok());
  }
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * double(m * n * k * state.iterations()), benchmark::Counter::kIsRate);
}

void SgemmOneDnn(benchmark::State& state) {
  const auto lane = device::Lane::shared();
  const auto m = state.range(0), n = state.range(1), k = state.range(2);
  std::vector<float> a(std::size_t(m * k), 0.5f), b(std::size_t(n * k), 0.25f), c(std::size_t(m * n));
  for (auto _ : state) {
    std::promise<void> done;
    lane->post([&](kernels::LaneState&) {
      kernels::gemm(false, true, m, n, k, 1.0f, a.data(), k, b.data(), k, 0.0f, c.data(), n);
      done.set_value();
    });
    done.get_future().wait();
  }
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * double(m * n * k * state.iterations()), benchmark::Counter::kIsRate);
}

void shapes(benchmark::internal::Benchmark* b) {
  b->Args({2048, 384, 128})
      ->Args({256, 2304, 768})
      ->Args({256, 768, 3072})
      ->Args({1024, 1024, 1024})
      ->MeasureProcessCPUTime()
      ->UseRealTime();
}

BENCHMARK(GptStep)
    ->Arg(0)
    ->Arg(1)
    ->ArgName("compiled")
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK(Gpt2Step)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime()->Iterations(3);
BENCHMARK(SgemmTensor)->Apply(shapes);
BENCHMARK(SgemmOneDnn)->Apply(shapes);

}  // namespace
}  // namespace rille::tensor

BENCHMARK_MAIN();
