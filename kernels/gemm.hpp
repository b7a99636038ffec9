// Matrix products, by oneDNN for f32 and, where the processor has instructions for it, bf16 (the library
// chooses AVX2 or AVX-512 itself), and plain loops for f64 (tests only). f16 goes through f32. Accumulation:
// f32 in f32, in oneDNN's order, which is fixed for given sizes, layout, instruction set and thread count.
#pragma once

#include <cstdint>

#include "kernels/call.hpp"

namespace rille::kernels {

// c[m, n] = alpha * op(a)[m, k] op(b)[k, n] + beta * c, row-major; lda, ldb, ldc are row strides of the
// stored matrices. Called inside an OpenMP region it runs on the calling thread alone. Thread-safe. False:
// the library failed.
bool gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc);
bool gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
          const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
          std::int64_t ldc);

// oneDNN primitives already made, by shapes and strides, with their memory objects and scratchpad: a product costs no
// allocation after its first run. One thread at a time.
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

// bf16 products are worth it where the processor has instructions for them.
bool native_bf16();

// What stands behind a product (matmul_activated).
enum class Activation { none, relu, gelu };  // gelu: by tanh

}  // namespace rille::kernels
