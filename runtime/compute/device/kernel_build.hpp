// From a user's CUDA C++ to something that can be loaded: for the CPU a shared library by the system's C++ compiler,
// for a GPU a cubin by NVRTC (kernel_nvrtc.cpp). Both are kept on disk.
//
// Errors: invalid, code "kernel_compile", when the source does not compile; its message begins with the place in the
// user's script, its hint holds what the compiler says. device, when there is no compiler or no NVRTC.
// Every function here blocks while the compiler runs: not for the loop thread. Any other thread.
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
  std::string name;  // of the kernel, or an expression: "scale<float, 4>"; "": there is one
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<KernelConstant> constants;  // values of __constant__ variables
  std::vector<std::string> flags;         // handed to the compiler
  bool checked = false;                   // CPU only
  std::string arch;                       // of the GPU that it is for: "sm_90"; "": the CPU
  std::string file = "kernel";            // where the source stands, for errors
  int line = 1;                           // of its first line there
  std::string folder;                     // where #include "x.h" is sought first; "": nowhere
  std::string cache;                      // directory; "": nothing is kept
};

// The name of the one kernel that is meant, as in options.name or the only one of the source.
// invalid: none, several, or one that is not there.
Result<std::string> choose_kernel(const KernelSource& source, const KernelOptions& options);

struct BuiltLibrary {
  std::string path;     // in the cache, or in `kept`
  bool cached = false;  // it was there already
  std::string key;
};

Result<BuiltLibrary> build_for_cpu(const KernelSource& source, const std::string& name, const KernelOptions& options);

struct Cubin {
  std::string image;
  std::string lowered_name;  // as cuModuleGetFunction wants it
  std::vector<rille_abi::Parameter> parameters;
  struct Constant {
    std::string symbol;  // as cuModuleGetGlobal wants it
    unsigned element = rille_abi::other;
    std::size_t bytes = 0;  // 0: not known
  };
  std::vector<Constant> constants;  // as in the options
  bool cached = false;
};

// arch: "sm_90a". `text` is the source as the user wrote it.
Result<Cubin> build_for_cuda(std::string_view text, const KernelSource& source, const std::string& name,
                             const KernelOptions& options, const std::string& arch);
// The compiler that build_for_cpu uses: RILLE_CXX, or c++, g++, clang++ of the PATH. "" when there is none.
std::string cpu_compiler();

// What a compiler has said about `text`, as one Error. It says "file:3:5: error: .." (gcc, clang) or
// "file(3): error: .." (NVRTC).
Error compile_error(const std::string& name, const KernelOptions& options, std::string_view text, std::string log);
// The first line of the source with its place, for the compiler: #line 12 "train.lua"
std::string line_mark(const KernelOptions& options);

}  // namespace rille::device
