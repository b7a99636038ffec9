// The seam between CUDA kernels and the device that runs them. An operation on CUDA is a Launch: a plain C++ function
// that looks at a Call (as the CPU's kernel does) and asks a Launcher for kernels of kernels/cuda/*.cu by their names.
// The CUDA plug-in has a Launcher for the driver; tests have one that runs the same .cu sources through the CPU shim.
//
// Everything is asked for in order on one stream and may run later: pointers of a Call are device memory, numbers are
// copied when a launch is asked for. While a graph is captured nothing may be allocated, and what changes from step to
// step is read from device memory: the random key below, 0-d tensors. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/call.hpp"
#include "kernels/cuda/params.h"
#include "kernels/gemm.hpp"
#include "kernels/operations.hpp"

namespace rille::kernels::cuda {

struct Grid { unsigned x = 1, y = 1, z = 1; };

class Launcher {
 public:
  // `kernel`: text that lives as long as the program. `arguments`: a pointer to each value, in the order of the
  // kernel's parameters. More than 48 KB of `shared_bytes` have to be allowed first, as a driver wants it.
  virtual void launch(const char* kernel, Grid grid, Grid block, unsigned shared_bytes, void** arguments) = 0;
  // The same for a kernel that the device has loaded itself (Fused::function).
  virtual void launch_loaded(void* function, Grid grid, Grid block, void** arguments) = 0;
  virtual void fill(void* to, unsigned char byte, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;   // within the device
  // Device memory, 256-byte aligned, for this operation only; nullptr: no more (the operation returns at once).
  virtual void* scratch(std::size_t bytes) = 0;
  virtual Fault* fault() = 0;           // device memory
  virtual const StepKey* step_key() = 0;   // device memory; what a random operation's kernel reads
  virtual int multiprocessors() const = 0;
  virtual int architecture() const = 0; // 90: sm_90
  // Matrix products by a library. false: there is none for these types; the own kernel is launched.
  // Row-major out[b] = (in0[b] or its transpose) * (in1[b] or its transpose), by the views' strides; adds `bias`
  // (the last dimension's) where it has data; `accumulate`: adds to out; `tf32`: f32 operands may be rounded to TF32.
  struct Product {
    const View *a = nullptr, *b = nullptr, *bias = nullptr, *out = nullptr;
    bool accumulate = false, tf32 = false;
    Activation activation = Activation::none;     // of what is written to out
    const View* before = nullptr;                 // gets what the activation is of; null: nobody wants it
  };
  virtual bool product(const Product& p) = 0;
  // Fourier transforms by a library. false: it has none for this, nothing has been touched. Complex numbers (f64 where
  // `wide`) along n of [outer, n, inner], in place, by exp(sign 2 pi i k m / n); not divided by n.
  struct Fourier {
    void* data = nullptr;
    std::int64_t outer = 1, n = 1, inner = 1;
    int sign = -1;
    bool wide = false;
  };
  virtual bool transform(const Fourier&) { return false; }
  // Convolutions by a library. false: it has none for this. One of y (with `bias`), x and weight is written. `how`: as
  // the operation's attributes, stride, padding, dilation (two of each), groups.
  struct Convolved {
    enum What { forward, input_grad, weight_grad } what = forward;
    const View *x = nullptr, *weight = nullptr, *y = nullptr, *bias = nullptr;
    const std::int64_t* how = nullptr;
    bool tf32 = false;
  };
  virtual bool convolve(const Convolved&) { return false; }
  // A faster way that this call could not go, and why; users are told of it.
  virtual void declined(const char* /*library*/, const char* /*why*/) {}

 protected:
  ~Launcher() = default;
};

using Launch = void (*)(const Call&, Launcher&);

Launch launch_of(OpId op);  // nullptr: this operation runs nothing of kernels/cuda
// A Fault in words: the message, then after a newline the hint, as in Call::error.
void describe(const Fault& fault, char* text, std::size_t text_bytes);

// All device code: fat binaries (cubins and PTX) for cuModuleLoadData. A kernel stands in exactly one of them. Empty
// where the build had no nvcc. Target rille_cuda_images (docs/design/cuda.md).
struct Image {
  const char* name;                     // "attention": from kernels/cuda/attention.cu
  const char* data;
  std::size_t bytes;
};
extern const Image images[];
extern const std::size_t image_count;

}  // namespace rille::kernels::cuda
