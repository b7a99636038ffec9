// What products and memory cost alone on this machine: the floor under a training step. Reads lines "m n k calls TYPE"
// (TYPE f32 or bf16) and prints the seconds that all of them take, each shape by the fastest of oneDNN's ways and
// layouts, and the rate of a triad in bytes per second. usage: bench_gemm_floor < shapes; threads as OMP_NUM_THREADS
#include <cstdio>

#include "tests/bench/products.hpp"

namespace {

double triad() {
  const std::size_t n = 32u << 20;
  std::vector<float> a(n), b(n, 1), c(n, 2);
  const auto work = [&] {
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < n; ++i) a[i] = b[i] + 3 * c[i];
  };
  work();
  std::vector<double> all;
  for (int i = 0; i < 7; ++i) all.push_back(bench::seconds_of(work));
  return 3.0 * double(n) * sizeof(float) / bench::median(all);
}

}  // namespace

int main() {
  long m, n, k, calls;
  char type[8];
  double total = 0;
  while (std::scanf("%ld %ld %ld %ld %7s", &m, &n, &k, &calls, type) == 5)
    total += double(calls) * bench::Product(m, n, k, type[0] == 'b').fastest(5).seconds;
  std::printf("{\"products_s\": %.6f, \"triad_bytes_per_s\": %.0f}\n", total, triad());
  return 0;
}
