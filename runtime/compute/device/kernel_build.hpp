// Compiles a user's CUDA C++: for the CPU into a shared library by the system's C++ compiler, for a GPU into a cubin by
// NVRTC (kernel_nvrtc.cpp). Both results are cached on disk.
//
// Errors: kind invalid, code "kernel_compile", if the source does not compile; the message begins with the position in
// the user's script, the hint has the compiler's output. Kind device if there is no compiler or no NVRTC. Every
// function in this file blocks while the compiler runs: call it on any thread but the loop's.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/compute/device/kernel_source.hpp"
#include "runtime/core/base/use.hpp"

namespace rille::device {

struct KernelConstant {
  std::string name;
  std::vector<double> values;
};

struct KernelOptions {
  std::string name;  // the kernel's name or template instance, "scale<float, 4>"; "": the source's only kernel
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<KernelConstant> constants;  // values of __constant__ variables
  std::vector<std::string> flags;         // extra compiler flags
  bool apart = false;                     // run it in a process of its own; CPU only
  bool checked = false;                   // compile for checked mode (kernel_check.hpp); CPU only
  bool confined = false;                  // of a script that is not trusted; with apart: compile and run it confined
  std::string arch;                       // the GPU's architecture: "sm_90"; "": compile for the CPU
  std::string file = "kernel";            // name of the script that contains the source, for error messages
  int line = 1;                           // line number in `file` at which the source begins
  std::string folder;                     // folder searched first for #include "x.h"; "": no such folder
  std::string cache;                      // directory of the disk cache; "": no caching
  // called while the compiler for the CPU runs, and while a confined kernel is loaded: true ends that; empty: never
  std::function<bool()> stopped;
  // Gets the processor time of compiling and loading, as it grows; at its end, that of a confined kernel's process
  // outside of launches. Any thread; may be empty.
  std::function<void(std::int64_t ns)> computed;
  Room disk;  // asked for the size of a file before it is added to the cache; may be empty
};

// Returns options.name, or if that is empty the name of the source's only kernel. Error of kind invalid: the name is
// unknown, or it is empty and the source has no kernel or several.
Result<std::string> choose_kernel(const KernelSource& source, const KernelOptions& options);

// Asks options.disk for the size of the file.
Result<> ask_disk(const KernelOptions& options, const std::string& file);

struct BuiltLibrary {
  std::string path;     // path of the library, in the cache or a temporary file
  bool cached = false;  // whether the cache already had the library
  std::string key;
};

Result<BuiltLibrary> build_for_cpu(const KernelSource& source, const std::string& name, const KernelOptions& options);

struct Cubin {
  std::string image;
  std::string lowered_name;  // the kernel's mangled name, for cuModuleGetFunction
  std::vector<rille_abi::Parameter> parameters;
  struct Constant {
    std::string symbol;  // the variable's mangled name, for cuModuleGetGlobal
    unsigned element = rille_abi::other;
    std::size_t bytes = 0;  // size of the variable; 0: unknown
  };
  std::vector<Constant> constants;  // in the order of KernelOptions::constants
  bool cached = false;
};

// `arch`: "sm_90a". `text`: the source as the user wrote it.
Result<Cubin> build_for_cuda(std::string_view text, const KernelSource& source, const std::string& name,
                             const KernelOptions& options, const std::string& arch);
// Path of the compiler that build_for_cpu() runs: RILLE_CXX, or c++, g++ or clang++ from $PATH. "": none was found.
std::string cpu_compiler();

// Makes one Error from a compiler's output about the source `text`. Reads messages of the forms "file:3:5: error: .."
// (gcc, clang) and "file(3): error: .." (NVRTC).
Error compile_error(const std::string& name, const KernelOptions& options, std::string_view text, std::string log);
// The directive that precedes the source, so that compilers report lines of the script: #line 12 "train.lua"
std::string line_mark(const KernelOptions& options);

}  // namespace rille::device
