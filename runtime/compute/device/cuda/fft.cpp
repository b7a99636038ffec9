#include "runtime/compute/device/cuda/fft.hpp"

#include "runtime/compute/device/cuda/symbols.hpp"

namespace rille::device::cuda {

namespace {

struct Library {
#define RILLE_MEMBER(name, parameters) int(*name) parameters = nullptr;
  RILLE_FFT(RILLE_MEMBER)
#undef RILLE_MEMBER
  bool whole = false;

  Library() {
    Symbols found(CudaPart::cufft);
#define RILLE_FIND(name, parameters) found.find(name, #name);
    RILLE_FFT(RILLE_FIND)
#undef RILLE_FIND
    whole = found.whole();
  }
};

const Library& library() {
  static const Library l;
  return l;
}

}  // namespace

Fft::~Fft() {
  for (const auto& [key, plan] : plans_)
    if (plan.handle >= 0) library().cufftDestroy(plan.handle);
}

const Fft::Plan* Fft::plan(const kernels::cuda::Launcher::Fourier& f, bool may_make) {
  why_ = "the variable RILLE_CUDA_WITHOUT excludes it";
  if (left_out(CudaPart::cufft)) return nullptr;
  why_ = "the numbers are stored at distances that it does not support";
  if (f.inner > 1 && f.outer > runs_max) return nullptr;
  const std::int64_t batch = f.inner > 1 ? f.inner : f.outer;
  const std::int64_t numbers[] = {f.n, f.inner, batch, f.wide};
  const std::string key(reinterpret_cast<const char*>(numbers), sizeof numbers);
  why_ = "it cannot plan a transform of " + std::to_string(f.n) + " numbers";
  if (const auto found = plans_.find(key); found != plans_.end()) return found->second.good ? &found->second : nullptr;
  if (!library().whole) {
    const auto& loaded = load_part(CudaPart::cufft);
    why_ = loaded.handle ? "the library lacks a function that Rille needs" : loaded.why;
    return nullptr;
  }
  if (!may_make || plans_.size() >= plans_max) {
    why_ = may_make ? "the limit of kept plans is reached" : "its first use came during the capture of a CUDA graph";
    return nullptr;
  }
  const Library& l = library();
  Plan& made = plans_[key];
  long long n = f.n;
  const long long distance = f.inner > 1 ? 1 : f.n;
  made.good = l.cufftCreate(&made.handle) == 0 && l.cufftSetAutoAllocation(made.handle, 0) == 0 &&
              l.cufftMakePlanMany64(made.handle, 1, &n, &n, f.inner, distance, &n, f.inner, distance,
                                    f.wide ? complex_64 : complex_32, batch, &made.scratch_bytes) == 0;
  return made.good ? &made : nullptr;
}

bool Fft::run(const Plan& plan, const kernels::cuda::Launcher::Fourier& f, void* scratch, CUstream stream) {
  const Library& l = library();
  if (l.cufftSetStream(plan.handle, stream) != 0 || (scratch && l.cufftSetWorkArea(plan.handle, scratch) != 0))
    return false;
  const std::size_t each = std::size_t(f.n * f.inner) * (f.wide ? 16 : 8);
  const auto execute = f.wide ? l.cufftExecZ2Z : l.cufftExecC2C;
  for (std::int64_t i = 0; i < (f.inner > 1 ? f.outer : 1); ++i) {
    void* const at = static_cast<char*>(f.data) + std::size_t(i) * each;
    if (execute(plan.handle, at, at, f.sign) != 0) return false;
  }
  return true;
}

}  // namespace rille::device::cuda
