// Matrix products by cuBLASLt, loaded at run time and declared here as in its headers of CUDA 12 and 13. If cuBLASLt is
// missing or does not support an operand's layout or type, Rille's own kernel multiplies.
//
// Row-major C = A B equals column-major C' = B' A': the library gets B as its first operand, and no matrix is
// transposed in memory. f32 is computed in f32, or in TF32 if the product allows it; half types are summed in f32. The
// heuristic's first algorithm is chosen once per geometry, so a plain run, a capture and another process with the same
// library version use the same algorithm.
//
// One Blas per card; used on the lane.
#pragma once

#include <string>
#include <unordered_map>

#include "kernels/cuda/launcher.hpp"
#include "runtime/compute/device/cuda/driver.hpp"

namespace rille::device::cuda {

// A matrix product in cuBLASLt's terms.
struct BlasShape {
  std::int64_t m = 0, n = 0, k = 0;  // D is m x n and column-major, with k summands per element
  bool transpose_a = false, transpose_b = false;
  std::int64_t lda = 0, ldb = 0, ldd = 0;
  std::int64_t batches = 1, stride_a = 0, stride_b = 0, stride_d = 0;
  int type = 0, type_d = 0;  // cudaDataType
  bool bias = false, accumulate = false, tf32 = false;
  int epilogue = 1;            // a sum of cublasLtEpilogue_t flags
  std::int64_t ld_before = 0;  // leading dimension of the matrix that receives the activation's input; 0: there is none
  unsigned align_before = 0, align_bias = 0;
  unsigned align_a = 0, align_b = 0, align_d = 0;  // alignment of the addresses, in bytes
};

// false: the library does not support these layouts; `why` says which property.
bool blas_shape(const kernels::cuda::Launcher::Product& p, BlasShape& shape, const char*& why);

class Blas {
 public:
  ~Blas();
  struct Plan {
    bool good = false;
    std::string why;  // why there is no algorithm; "" if good
    std::uint64_t algorithm[8] = {};
    std::size_t scratch_bytes = 0;
  };
  // null: cuBLASLt is missing or has no algorithm for this shape, see why(). The card's context must be current.
  const Plan* plan(const BlasShape& shape, const kernels::cuda::Launcher::Product& p);
  bool run(const BlasShape& shape, const Plan& plan, const kernels::cuda::Launcher::Product& p, void* scratch,
           CUstream stream);
  const char* why() const { return why_.c_str(); }  // reason of the latest failure

 private:
  bool ready();
  std::string why_, why_not_;  // why_not_: why cuBLASLt is not available
  void* handle_ = nullptr;
  bool tried_ = false;
  std::unordered_map<std::string, Plan> plans_;
};

}  // namespace rille::device::cuda
