// Matrix products by cuBLASLt, found and loaded at run time, declared here as its header of CUDA 12 and 13 does. Where
// it is not found, or does not serve an operand's layout or type, the own kernel multiplies.
//
// Row-major C = A B is column-major C' = B' A': so the library gets B first, and no matrix is ever moved. f32 is
// computed in f32, or in TF32 when the product says so, half types are summed in f32. The algorithm is the heuristic's
// first, chosen once for each geometry: so it is the same for a plain run, a capture and the next process on this
// version.
//
// One for each card; the lane's.
#pragma once

#include <string>
#include <unordered_map>

#include "kernels/cuda/launcher.hpp"
#include "runtime/compute/device/cuda/driver.hpp"

namespace rille::device::cuda {

// In the library's words, for one product.
struct BlasShape {
  std::int64_t m = 0, n = 0, k = 0;  // of the library: D is m x n, column-major
  bool transpose_a = false, transpose_b = false;
  std::int64_t lda = 0, ldb = 0, ldd = 0;
  std::int64_t batches = 1, stride_a = 0, stride_b = 0, stride_d = 0;
  int type = 0, type_d = 0;  // cudaDataType
  bool bias = false, accumulate = false, tf32 = false;
  int epilogue = 1;            // a sum of the library's flags
  std::int64_t ld_before = 0;  // of the matrix that gets what the activation is of; 0: none
  unsigned align_before = 0, align_bias = 0;
  unsigned align_a = 0, align_b = 0, align_d = 0;  // of the addresses, in bytes
};

// false: the library cannot read these views as they lie; why.
bool blas_shape(const kernels::cuda::Launcher::Product& p, BlasShape& shape, const char*& why);

class Blas {
 public:
  ~Blas();
  struct Plan {
    bool good = false;
    std::string why;  // not good
    std::uint64_t algorithm[8] = {};
    std::size_t scratch_bytes = 0;
  };
  // null: no library, or it has nothing for this shape. why() tells. The context is current.
  const Plan* plan(const BlasShape& shape, const kernels::cuda::Launcher::Product& p);
  bool run(const BlasShape& shape, const Plan& plan, const kernels::cuda::Launcher::Product& p, void* scratch,
           CUstream stream);
  const char* why() const { return why_.c_str(); }  // of what was declined last

 private:
  bool ready();
  std::string why_, why_not_;  // why_not_: there is none
  void* handle_ = nullptr;
  bool tried_ = false;
  std::unordered_map<std::string, Plan> plans_;
};

}  // namespace rille::device::cuda
