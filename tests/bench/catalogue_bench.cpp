// How fast a query of the catalogue is. Run: bench_catalogue [--benchmark_filter=...]. Warm: on a catalogue that is
// open. Open: also mapped and checked, as a process does that starts, its pages in memory. Cold: the same after the
// kernel has dropped the file's pages. All for 100 000 offers of ten providers.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <numeric>

#include "runtime/core/store/file.hpp"
#include "runtime/workflow/provider/catalogue/file.hpp"
#include "tests/unit/provider/catalogue_offers.hpp"

namespace rille::provider {
namespace {

constexpr const char* names[] = {"aws",   "alibaba", "tencent", "huawei", "gcp",
                                 "azure", "runpod",  "lambda",  "vast",   "ssh"};
constexpr int providers = std::size(names);
constexpr std::size_t rows = 100'000;

const std::string& path() {
  static const std::string made = [] {
    const char* folder = std::getenv("TMPDIR");
    std::string file = std::string(folder ? folder : "/tmp") + "/rille-bench-offers-" + std::to_string(getpid());
    CatalogueWriter writer;
    for (int i = 0; i < providers; ++i) {
      CataloguePart part;
      part.provider = names[i];
      if (!writer.add(part, test::random_offers(rows / providers, static_cast<unsigned>(i), part.provider, i % 2)))
        std::abort();
    }
    if (!store::write_file_atomic(file, writer.finish())) std::abort();
    static const std::string kept = file;
    std::atexit([] { unlink(kept.c_str()); });
    return file;
  }();
  return made;
}

std::vector<std::size_t> every_part() {
  std::vector<std::size_t> out(providers);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

OfferQuery wish(int which) {
  const char* texts[] = {R"({"gpu":"A100-80GB:8","max_price":20,"regions":["eu-central-1","us-east-1"]})",
                         R"({"gpu":"any","rank":"price_per_tflop","rates":{"CNY":0.14}})",
                         R"({"interconnect":"nvswitch","compliance":"gdpr","network_gbps":100})", "{}"};
  return *OfferQuery::from_value(*Value::from_json(texts[which]));
}

void query_of(benchmark::State& state, const Catalogue& c, const OfferQuery& q) {
  const Catalogue::Found found = c.find(every_part(), q, 100);
  benchmark::DoNotOptimize(found.offers.data());
  state.counters["matching"] = static_cast<double>(found.matching);
}

void Warm(benchmark::State& state) {
  const Catalogue c = *Catalogue::open(path());
  const OfferQuery q = wish(static_cast<int>(state.range(0)));
  for (auto _ : state) query_of(state, c, q);
}

void Open(benchmark::State& state) {
  const OfferQuery q = wish(static_cast<int>(state.range(0)));
  (void)path();
  for (auto _ : state) query_of(state, *Catalogue::open(path()), q);
}

void Cold(benchmark::State& state) {
  const OfferQuery q = wish(static_cast<int>(state.range(0)));
  const int file = open(path().c_str(), O_RDONLY | O_CLOEXEC);
  fsync(file);
  for (auto _ : state) {
    state.PauseTiming();
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    state.ResumeTiming();
    query_of(state, *Catalogue::open(path()), q);
  }
  close(file);
}

BENCHMARK(Warm)->DenseRange(0, 3)->Unit(benchmark::kMillisecond);
BENCHMARK(Open)->DenseRange(0, 3)->Unit(benchmark::kMillisecond);
BENCHMARK(Cold)->DenseRange(0, 3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rille::provider

BENCHMARK_MAIN();
