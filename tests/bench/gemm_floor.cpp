// What products and memory cost alone on this machine: the floor under a training step. Reads lines "m n k calls TYPE"
// (TYPE f32 or bf16) and prints the seconds that all of them take, each shape by the fastest of oneDNN's ways and
// layouts, and the rate of a triad in bytes per second. usage: bench_gemm_floor < shapes; threads as OMP_NUM_THREADS
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include <dnnl.hpp>

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// The median of `rounds`, after one that warms up.
double median_of(int rounds, const std::function<void()>& work) {
  work();
  std::vector<double> all;
  for (int i = 0; i < rounds; ++i) all.push_back(seconds_of(work));
  std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
  return all[std::size_t(rounds / 2)];
}

double product(long m, long n, long k, bool half) {
  using dnnl::memory;
  static dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  static dnnl::stream stream{engine};
  const auto type = half ? memory::data_type::bf16 : memory::data_type::f32;
  const std::size_t size = half ? 2 : 4;
  std::vector<char> a(std::size_t(m * k) * size, 1), b(std::size_t(k * n) * size, 1), c(std::size_t(m * n) * size);
  double best = 1e9;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      if (ta && tb) continue;
      const memory::desc da({m, k}, type, ta ? memory::dims{1, m} : memory::dims{k, 1});
      const memory::desc db({k, n}, type, tb ? memory::dims{1, k} : memory::dims{n, 1});
      const memory::desc dc({m, n}, type, memory::dims{n, 1});
      const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(da, db, dc), engine);
      dnnl::matmul primitive(pd);
      memory ma(da, engine, a.data()), mb(db, engine, b.data()), mc(dc, engine, c.data());
      best = std::min(best, median_of(5, [&] {
        primitive.execute(stream, {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, mc}});
        stream.wait();
      }));
      if (half) continue;
      best = std::min(best, median_of(5, [&] {
        dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, reinterpret_cast<float*>(a.data()), ta ? m : k,
                   reinterpret_cast<float*>(b.data()), tb ? k : n, 0, reinterpret_cast<float*>(c.data()), n);
      }));
    }
  }
  return best;
}

double triad() {
  const std::size_t n = 32u << 20;
  std::vector<float> a(n), b(n, 1), c(n, 2);
  const double each = median_of(7, [&] {
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < n; ++i) a[i] = b[i] + 3 * c[i];
  });
  return 3.0 * double(n) * sizeof(float) / each;
}

}  // namespace

int main() {
  long m, n, k, calls;
  char type[8];
  double total = 0;
  while (std::scanf("%ld %ld %ld %ld %7s", &m, &n, &k, &calls, type) == 5)
    total += double(calls) * product(m, n, k, type[0] == 'b');
  std::printf("{\"products_s\": %.6f, \"triad_bytes_per_s\": %.0f}\n", total, triad());
  return 0;
}
