// cuBLASLt's functions, constants and structs as in NVIDIA's headers of CUDA 12 and 13.
// tests/unit/cuda/library_prototypes_test.cpp compares them with those headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/compute/device/cuda/driver.hpp"

namespace rille::device::cuda::lt {

using Status = int;
struct Result {  // cublasLtMatmulHeuristicResult_t
  std::uint64_t algorithm[8];
  std::size_t scratch_bytes;
  Status state;
  float waves;
  int reserved[4];
};
inline constexpr int operation_t = 1, compute_32f = 68, compute_64f = 70, compute_tf32 = 77, real_f32 = 0, real_f64 = 1,
                     real_f16 = 2, real_bf16 = 14;
inline constexpr int epilogue_none = 1, epilogue_relu = 2, epilogue_bias = 4, epilogue_gelu = 32, epilogue_before = 128;
inline constexpr int desc_transpose_a = 3, desc_transpose_b = 4, desc_epilogue = 7, desc_bias = 8, desc_before = 11,
                     desc_ld_before = 12;
inline constexpr int layout_batches = 5, layout_stride = 6;
inline constexpr int prefer_scratch = 1, prefer_reduction = 3, prefer_align_a = 5, prefer_align_b = 6,
                     prefer_align_c = 7, prefer_align_d = 8;
inline constexpr std::uint32_t reduce_in_compute_type = 2;

#define RILLE_BLAS(X)                                                                                                  \
  X(create, cublasLtCreate, (void**))                                                                                  \
  X(destroy, cublasLtDestroy, (void*))                                                                                 \
  X(desc_create, cublasLtMatmulDescCreate, (void**, int compute, int scale))                                           \
  X(desc_destroy, cublasLtMatmulDescDestroy, (void*))                                                                  \
  X(desc_set, cublasLtMatmulDescSetAttribute, (void*, int what, const void* value, std::size_t bytes))                 \
  X(layout_create, cublasLtMatrixLayoutCreate,                                                                         \
    (void**, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t ld))                                    \
  X(layout_destroy, cublasLtMatrixLayoutDestroy, (void*))                                                              \
  X(layout_set, cublasLtMatrixLayoutSetAttribute, (void*, int what, const void* value, std::size_t bytes))             \
  X(prefer_create, cublasLtMatmulPreferenceCreate, (void**))                                                           \
  X(prefer_destroy, cublasLtMatmulPreferenceDestroy, (void*))                                                          \
  X(prefer_set, cublasLtMatmulPreferenceSetAttribute, (void*, int what, const void* value, std::size_t bytes))         \
  X(heuristic, cublasLtMatmulAlgoGetHeuristic,                                                                         \
    (void* handle, void* desc, void* a, void* b, void* c, void* d, void* preference, int wanted, Result*, int* found)) \
  X(matmul, cublasLtMatmul,                                                                                            \
    (void* handle, void* desc, const void* alpha, const void* a, void* layout_a, const void* b, void* layout_b,        \
     const void* beta, const void* c, void* layout_c, void* d, void* layout_d, const void* algorithm, void* scratch,   \
     std::size_t bytes, CUstream))

}  // namespace rille::device::cuda::lt
