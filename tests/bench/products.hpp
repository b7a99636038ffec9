// A product of two matrices by oneDNN alone, in each of its ways and plain layouts: what products through Rille, and
// training steps, are measured beside. OpenMP's threads are those of the thread that calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <vector>

namespace bench {

inline double seconds_of(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

inline double median(std::vector<double> all) {
  const auto middle = all.begin() + std::ptrdiff_t(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

// m x k by k x n, in f32 or bf16.
class Product {
 public:
  Product(long m, long n, long k, bool half)
      : a_(filled(m * k, half)), b_(filled(k * n, half)), c_(filled(m * n, half)) {
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        if (!ta || !tb) add(m, n, k, half, ta, tb);
  }

  struct Fastest {
    std::function<void()> run;
    double seconds = 1e9;
  };
  // By the medians of so many rounds, in each of which every way has its turn; one more before them warms up.
  Fastest fastest(int rounds) const {
    std::vector<std::vector<double>> times(ways_.size());
    for (int round = 0; round <= rounds; ++round)
      for (std::size_t i = 0; i < ways_.size(); ++i)
        if (const double seconds = seconds_of(ways_[i]); round) times[i].push_back(seconds);
    Fastest best;
    for (std::size_t i = 0; i < ways_.size(); ++i)
      if (const double seconds = median(times[i]); seconds < best.seconds) best = {ways_[i], seconds};
    return best;
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  using Operand = std::unique_ptr<void, Free>;

  static Operand filled(long count, bool half) {  // aligned as Rille's buffers are
    const std::size_t bytes = (std::size_t(count) * (half ? 2 : 4) + 63) / 64 * 64;
    Operand made(std::aligned_alloc(64, bytes));
    if (!made) std::abort();
    std::uint32_t state = 1;
    const auto next = [&state] { return float((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1; };
    for (long i = 0; i < count; ++i) {
      const float value = next();
      if (half) std::memcpy(static_cast<char*>(made.get()) + 2 * i, reinterpret_cast<const char*>(&value) + 2, 2);
      else static_cast<float*>(made.get())[i] = value;
    }
    return made;
  }

  void add(long m, long n, long k, bool half, bool ta, bool tb) {
    using dnnl::memory;
    static dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    static dnnl::stream stream{engine};
    const auto type = half ? memory::data_type::bf16 : memory::data_type::f32;
    const memory::desc da({m, k}, type, ta ? memory::dims{1, m} : memory::dims{k, 1});
    const memory::desc db({k, n}, type, tb ? memory::dims{1, k} : memory::dims{n, 1});
    const memory::desc dc({m, n}, type, memory::dims{n, 1});
    const dnnl::matmul primitive(dnnl::matmul::primitive_desc(dnnl::matmul::desc(da, db, dc), engine));
    const memory ma(da, engine, a_.get()), mb(db, engine, b_.get()), mc(dc, engine, c_.get());
    ways_.push_back([primitive, ma, mb, mc] {
      primitive.execute(stream, {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, mc}});
      stream.wait();
    });
    if (half) return;
    ways_.push_back(
        [=, a = static_cast<float*>(a_.get()), b = static_cast<float*>(b_.get()), c = static_cast<float*>(c_.get())] {
          dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, a, ta ? m : k, b, tb ? k : n, 0, c, n);
        });
  }

  Operand a_, b_, c_;
  std::vector<std::function<void()>> ways_;
};

}  // namespace bench
