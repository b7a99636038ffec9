// Fourier transforms by cuFFT, loaded at run time and declared here as in its headers of CUDA 12 and 13. Transforms are
// complex, along one dimension, in place. If cuFFT is missing, or the transforms are too scattered in memory, Rille's
// own kernels run.
//
// A plan is made once per geometry and kept, since captured graphs use the plan's tables; beyond plans_max geometries
// Rille's own kernels run. The operation provides scratch memory. One Fft per card; used on the lane.
#pragma once

#include <string>
#include <unordered_map>

#include "kernels/cuda/launcher.hpp"
#include "runtime/compute/device/cuda/driver.hpp"

namespace rille::device::cuda {

#define RILLE_FFT(X)                                                                                                 \
  X(cufftCreate, (int* plan))                                                                                        \
  X(cufftDestroy, (int plan))                                                                                        \
  X(cufftSetAutoAllocation, (int plan, int automatic))                                                               \
  X(cufftMakePlanMany64, (int plan, int rank, long long* n, long long* in_embed, long long in_stride,                \
                          long long in_distance, long long* out_embed, long long out_stride, long long out_distance, \
                          int type, long long batch, std::size_t* work_bytes))                                       \
  X(cufftSetStream, (int plan, CUstream))                                                                            \
  X(cufftSetWorkArea, (int plan, void* work))                                                                        \
  X(cufftExecC2C, (int plan, void* in, void* out, int direction))                                                    \
  X(cufftExecZ2Z, (int plan, void* in, void* out, int direction))

class Fft {
 public:
  static constexpr std::size_t plans_max = 256;
  // Most cuFFT executions per operation: one per index of the outer dimension, if there is an inner dimension.
  static constexpr std::int64_t runs_max = 32;
  static constexpr int complex_32 = 0x29, complex_64 = 0x69;  // cufftType
  ~Fft();
  struct Plan {
    int handle = -1;
    std::size_t scratch_bytes = 0;
    bool good = false;
  };
  // Finds or makes the plan; null: cuFFT is missing or has no plan, see why(). `may_make`: a new plan, which allocates
  // memory, may be made. The card's context must be current.
  const Plan* plan(const kernels::cuda::Launcher::Fourier& f, bool may_make);
  bool run(const Plan& plan, const kernels::cuda::Launcher::Fourier& f, void* scratch, CUstream stream);
  const char* why() const { return why_.c_str(); }  // reason of the latest failure

 private:
  std::string why_;
  std::unordered_map<std::string, Plan> plans_;
};

}  // namespace rille::device::cuda
