// For tests of kernels in processes of their own: a cache of the test's, launches, and code that makes system calls.
#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/compute/device/kernel.hpp"
#include "runtime/compute/device/kernel_files.hpp"

namespace rille::device {

inline const std::string& apart_cache() {
  static const WorkDirectory directory = *WorkDirectory::create(std::filesystem::temp_directory_path().string());
  return directory.path();
}

inline Result<std::shared_ptr<Kernel>> compile_apart(std::string_view source, bool checked = false,
                                                     std::vector<std::string> flags = {}) {
  KernelOptions options;
  options.cache = apart_cache();
  options.apart = true;
  options.confined = true;
  options.checked = checked;
  options.flags = std::move(flags);
  options.file = "test.lua";
  options.line = 10;
  return Kernel::compile(source, options);
}

inline std::shared_ptr<Kernel> made_apart(std::string_view source, bool checked = false) {
  auto k = compile_apart(source, checked);
  if (!k) FAIL(k.error().summary());
  return *k;
}

template <class T>
LaunchArgument of(std::vector<T>& v) {
  LaunchArgument a;
  a.pointer = v.data();
  a.bytes = v.size() * sizeof(T);
  return a;
}
inline LaunchArgument of(int n) {
  LaunchArgument a;
  std::memcpy(a.value, &n, sizeof n);
  return a;
}

inline LaunchShape line_of_threads(unsigned blocks, unsigned threads) {
  LaunchShape s;
  s.grid[0] = blocks;
  s.block[0] = threads;
  return s;
}

// The results of a kernel's system calls, made by code that calls no library.
inline const char* const syscalls = R"x(
  extern "C" int pthread_create(unsigned long*, const void*, void* (*)(void*), void*);
  extern "C" int pthread_attr_init(void*);
  extern "C" int pthread_attr_setstacksize(void*, unsigned long);
  static void* work(void*) { for (volatile long n = 0;; n = n + 1) {} }
  static void* wait(void*) { for (;;) asm volatile("syscall" :: "a"(34) : "rcx", "r11", "memory"); }
  static long call(long n, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                   long f = 0) {
    register long r9 asm("r9") = f; long r; register long r10 asm("r10") = d; register long r8 asm("r8") = e;
    asm volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return r;
  }
)x";

// Waits until the process has ended, while it has not been waited for elsewhere.
inline bool gone(pid_t pid) {
  for (int i = 0; i < 1000; ++i) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    const std::string text((std::istreambuf_iterator<char>(stat)), {});
    if (text.empty() || text.find(") Z ") != text.npos) return true;
    ::usleep(10'000);
  }
  return false;
}

// Its compiler computes for a minute or more.
inline const char* const long_to_compile = R"x(
  constexpr unsigned long f(unsigned long n) { unsigned long s = 0; for (; n; --n) s = s * 31 + n; return s; }
  template <int N> struct S { static constexpr unsigned long v = f(200000 + N) + S<N - 1>::v; };
  template <> struct S<0> { static constexpr unsigned long v = 0; };
  __global__ void k(unsigned long long* x) { x[0] = S<800>::v; })x";

}  // namespace rille::device
