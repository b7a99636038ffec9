// Shared by the stand-ins of NVIDIA's libraries: work on the stand-in driver's stream, the number types and their
// rounding.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace rille::test {

using LibraryCall = int (*)(void* stream, const std::function<void()>* run);

// null: another driver is loaded.
inline LibraryCall library_call() {
  const char* named = std::getenv("RILLE_CUDA_DRIVER");
  void* library = named ? ::dlopen(named, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : nullptr;
  return library ? reinterpret_cast<LibraryCall>(::dlsym(library, "standin_call")) : nullptr;
}

// The stream continues once the condition holds; another rank's work makes it hold.
using LibraryGate = int (*)(void* stream, const std::function<bool()>* holds);

inline LibraryGate library_gate() {
  const char* named = std::getenv("RILLE_CUDA_DRIVER");
  void* library = named ? ::dlopen(named, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : nullptr;
  return library ? reinterpret_cast<LibraryGate>(::dlsym(library, "standin_gate")) : nullptr;
}

// Rounds to ten bits of mantissa, to nearest, ties away from zero.
inline double to_tf32(double x) {
  float f = float(x);
  std::uint32_t bits;
  std::memcpy(&bits, &f, 4);
  bits = (bits + 0x1000u) & ~0x1fffu;
  std::memcpy(&f, &bits, 4);
  return double(f);
}

// Half types, rounded from f32 sums: to nearest, ties to even.
struct Half {
  _Float16 value = 0;
  Half() = default;
  explicit Half(double x) : value(_Float16(float(x))) {}
  explicit operator double() const { return double(value); }
};
struct Brain {
  std::uint16_t high = 0;
  Brain() = default;
  explicit Brain(double x) {
    const float f = float(x);
    std::uint32_t bits;
    std::memcpy(&bits, &f, 4);
    high = std::uint16_t(f != f ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  explicit operator double() const {
    const std::uint32_t bits = std::uint32_t(high) << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return double(f);
  }
};

// The libraries may decline unsupported types: RILLE_TEST_NO_HALF makes them decline half types.
inline bool declines_half() { return std::getenv("RILLE_TEST_NO_HALF") != nullptr; }

}  // namespace rille::test
