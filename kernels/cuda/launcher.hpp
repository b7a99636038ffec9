// The interface between CUDA operations and the device that runs them. An operation on CUDA is a Launch: a C++ function
// that reads a Call (as the CPU's kernel does) and asks a Launcher to run kernels of kernels/cuda/*.cu by name. The
// CUDA plug-in implements the Launcher with the driver; tests implement it by running the same .cu sources on the CPU
// shim.
//
// A Launcher runs everything in order on one stream, possibly later. Pointers in a Call are device memory; numbers are
// copied at the time of the call. While a graph is captured nothing may be allocated. Values that change with each step
// (the random key, 0-d tensors) are read from device memory. Threads: one at a time.
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
  // `kernel`: a string that lives as long as the program. `arguments`: a pointer to each value, in the order of the
  // kernel's parameters. If `shared_bytes` is above 48 KB, the driver wants it allowed for the kernel before the
  // launch.
  virtual void launch(const char* kernel, Grid grid, Grid block, unsigned shared_bytes, void** arguments) = 0;
  // Launches a kernel that the device has loaded itself (Fused::function).
  virtual void launch_loaded(void* function, Grid grid, Grid block, void** arguments) = 0;
  virtual void fill(void* to, unsigned char byte, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;   // copies device memory to device memory
  // Device memory, 256-byte aligned, for this operation only; nullptr: out of memory (the operation then returns).
  virtual void* scratch(std::size_t bytes) = 0;
  virtual Fault* fault() = 0;           // device memory in which kernels report a data error
  virtual const StepKey* step_key() = 0;   // in device memory; read by the kernels of random operations
  virtual int multiprocessors() const = 0;
  virtual int architecture() const = 0; // compute capability: 90 for sm_90
  // A matrix product by a library. Returns false if the library has none for these types; then launch the kernel here.
  // Row-major out[b] = a[b] * b[b], each operand or its transpose as its strides say. Adds `bias` (one number per
  // column) if it has data. `accumulate`: adds the product to out. `tf32`: f32 operands may be rounded to TF32.
  struct Product {
    const View *a = nullptr, *b = nullptr, *bias = nullptr, *out = nullptr;
    bool accumulate = false, tf32 = false;
    Activation activation = Activation::none;     // applied to what is written to out
    const View* before = nullptr;                 // receives the values before the activation; null: not needed
  };
  virtual bool product(const Product& p) = 0;
  // A Fourier transform by a library. Returns false, with nothing changed, if the library cannot do it. Transforms
  // complex numbers (f64 if `wide`, else f32) along n of [outer, n, inner], in place, by exp(sign 2 pi i k m / n),
  // undivided.
  struct Fourier {
    void* data = nullptr;
    std::int64_t outer = 1, n = 1, inner = 1;
    int sign = -1;
    bool wide = false;
  };
  virtual bool transform(const Fourier&) { return false; }
  // A convolution by a library. Returns false if the library cannot do it. `what` says which of y (with `bias`), x and
  // weight is written. `how`: the operation's attributes: stride, padding, dilation (two numbers each), groups.
  struct Convolved {
    enum What { forward, input_grad, weight_grad } what = forward;
    const View *x = nullptr, *weight = nullptr, *y = nullptr, *bias = nullptr;
    const std::int64_t* how = nullptr;
    bool tf32 = false;
  };
  virtual bool convolve(const Convolved&) { return false; }
  // Reports that a faster library could not run this call, and why. The user gets this message.
  virtual void declined(const char* /*library*/, const char* /*why*/) {}

 protected:
  ~Launcher() = default;
};

using Launch = void (*)(const Call&, Launcher&);

Launch launch_of(OpId op);  // nullptr: the operation launches no kernel of kernels/cuda
// Writes the message for a Fault and, after a newline, the hint, as in Call::error.
void describe(const Fault& fault, char* text, std::size_t text_bytes);

// All device code: fat binaries (cubins and PTX) for cuModuleLoadData. Each kernel is in exactly one of them. Empty if
// nvcc was missing at build time. CMake target rille_cuda_images (docs/design/cuda.md).
struct Image {
  const char* name;                     // "attention" is made from kernels/cuda/attention.cu
  const char* data;
  std::size_t bytes;
};
extern const Image images[];
extern const std::size_t image_count;

}  // namespace rille::kernels::cuda
