// Matrix products. oneDNN computes f32 and, on processors with bf16 instructions, bf16; oneDNN itself chooses AVX2 or
// AVX-512. f64 (tests only) runs in plain loops, f16 through f32. f32 is accumulated in f32, in oneDNN's order, which
// is fixed for given sizes, layout, instruction set and thread count.
#pragma once

#include <cstdint>

#include "kernels/call.hpp"

namespace rille::kernels {

// c[m, n] = alpha * op(a)[m, k] op(b)[k, n] + beta * c, row-major; lda, ldb, ldc are row strides of the stored
// matrices. Inside an OpenMP region it runs on the calling thread only. Thread-safe. Returns false if the library
// failed.
bool gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc);
bool gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
          const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
          std::int64_t ldc);

// Caches oneDNN primitives by shapes and strides, with their memory objects and scratch memory, so that a product
// allocates nothing after its first run. One thread at a time.
class GemmCache {
 public:
  GemmCache();
  ~GemmCache();
  GemmCache(const GemmCache&) = delete;
  GemmCache& operator=(const GemmCache&) = delete;
  struct State;
  State& state() { return *state_; }

 private:
  State* state_;
};

// Whether the processor has bf16 instructions; without them a product in bf16 is slower than through f32.
bool native_bf16();

// The activation that is fused with a product (matmul_activated). gelu is the tanh form.
enum class Activation { none, relu, gelu };

}  // namespace rille::kernels
