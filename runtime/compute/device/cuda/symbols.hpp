// Looks up functions of a CUDA library loaded at run time.
#pragma once

#include <dlfcn.h>

#include "runtime/compute/device/cuda_libraries.hpp"

namespace rille::device::cuda {

class Symbols {
 public:
  explicit Symbols(CudaPart part) : library_(load_part(part).handle), whole_(library_ != nullptr) {}

  template <class F>
  void find(F*& function, const char* name) {
    if (library_) function = reinterpret_cast<F*>(::dlsym(library_, name));
    whole_ = whole_ && function;
  }
  bool whole() const { return whole_; }  // whether the library is loaded and has all functions that were looked up

 private:
  void* library_;
  bool whole_;
};

}  // namespace rille::device::cuda
