// What the stand-ins of NVIDIA's libraries share: work for the stand-in driver's stream, TF32's rounding.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace rille::test {

using LibraryCall = int (*)(void* stream, const std::function<void()>* run);

// null: another driver is here.
inline LibraryCall library_call() {
  const char* named = std::getenv("RILLE_CUDA_DRIVER");
  void* library = named ? ::dlopen(named, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : nullptr;
  return library ? reinterpret_cast<LibraryCall>(::dlsym(library, "standin_call")) : nullptr;
}

// Ten bits of mantissa, to the nearest, ties away from zero.
inline double to_tf32(double x) {
  float f = float(x);
  std::uint32_t bits;
  std::memcpy(&bits, &f, 4);
  bits = (bits + 0x1000u) & ~0x1fffu;
  std::memcpy(&f, &bits, 4);
  return double(f);
}

}  // namespace rille::test
