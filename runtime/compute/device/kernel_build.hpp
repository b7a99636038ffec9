// Compiles a user's CUDA C++: for the CPU into a shared library by the system's C++ compiler, for a GPU into a cubin by
// NVRTC (kernel_nvrtc.cpp). Both are cached on disk.
//
// Errors: invalid, code "kernel_compile", if the source does not compile; the message begins with the position in the
// user's script, the hint has the compiler's output. device, if there is no compiler or no NVRTC.
// Every function here blocks while the compiler runs: any thread but the loop's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/compute/device/kernel_source.hpp"

namespace rille::device {

struct KernelConstant {
  std::string name;
  std::vector<double> values;
};

struct KernelOptions {
  std::string name;  // of the kernel, or an expression: "scale<float, 4>"; "": the only one
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<KernelConstant> constants;  // values of __constant__ variables
  std::vector<std::string> flags;         // passed to the compiler
  bool checked = false;                   // CPU only
  std::string arch;                       // architecture of the GPU: "sm_90"; "": the CPU
  std::string file = "kernel";            // the script that contains the source, for errors
  int line = 1;                           // of the source's first line in that script
  std::string folder;                     // searched first for #include "x.h"; "": none
  std::string cache;                      // directory; "": no caching
};

// The kernel's name: options.name, or the only kernel of the source. invalid: none, several, or an unknown name.
Result<std::string> choose_kernel(const KernelSource& source, const KernelOptions& options);

struct BuiltLibrary {
  std::string path;     // in the cache, or temporary
  bool cached = false;  // it was cached before
  std::string key;
};

Result<BuiltLibrary> build_for_cpu(const KernelSource& source, const std::string& name, const KernelOptions& options);

struct Cubin {
  std::string image;
  std::string lowered_name;  // for cuModuleGetFunction
  std::vector<rille_abi::Parameter> parameters;
  struct Constant {
    std::string symbol;  // for cuModuleGetGlobal
    unsigned element = rille_abi::other;
    std::size_t bytes = 0;  // 0: unknown
  };
  std::vector<Constant> constants;  // in the order of the options
  bool cached = false;
};

// arch: "sm_90a". `text`: the source as the user wrote it.
Result<Cubin> build_for_cuda(std::string_view text, const KernelSource& source, const std::string& name,
                             const KernelOptions& options, const std::string& arch);
// The compiler of build_for_cpu: RILLE_CXX, or c++, g++, clang++ in the PATH. "" if there is none.
std::string cpu_compiler();

// Makes one Error from a compiler's output on `text`, in the forms "file:3:5: error: .." (gcc, clang) and
// "file(3): error: .." (NVRTC).
Error compile_error(const std::string& name, const KernelOptions& options, std::string_view text, std::string log);
// A line directive for the source's first line: #line 12 "train.lua"
std::string line_mark(const KernelOptions& options);

}  // namespace rille::device
