// Kernel: a user's CUDA C++ kernel, compiled and loaded for the CPU, or compiled for a GPU architecture. Each Kernel
// loads its own copy, with its own __constant__ and __device__ variables.
//
// compile() blocks while the compiler runs; call it off the loop thread. run() is for the CPU's lane; a GPU's kernel is
// launched by its device (executor.hpp). Other functions: any thread. Errors: see kernel_build.hpp; run() returns kind
// device, code "kernel_check", for an error of the kernel itself (checked mode, assert, a deadlock), and memory if
// there are no stacks.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/compute/device/kernel_build.hpp"
#include "runtime/compute/device/kernel_run.hpp"

namespace rille::device {

struct LaunchShape {
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  bool cooperative = false;
  bool operator==(const LaunchShape&) const = default;
};
constexpr unsigned grid_yz_max = 65535;           // of every GPU so far
constexpr unsigned shared_bytes_max = 227 << 10;  // of an H100; a GPU may have less

// One value or pointer, in the form of the kernel's parameter.
struct LaunchArgument {
  void* pointer = nullptr;
  std::size_t bytes = 0;                 // size of the pointer's memory
  alignas(16) std::byte value[32] = {};  // for a parameter by value
};

// Stores a number as an Element of the kernel; false if the type cannot represent it.
bool put_number(unsigned element, void* at, double v);

class Kernel {
 public:
  static Result<std::shared_ptr<Kernel>> compile(std::string_view source, const KernelOptions& options);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<rille_abi::Parameter>& parameters() const { return parameters_; }
  // "x", or "argument 2" if the source does not name it.
  std::string parameter_name(std::size_t i) const;
  // "saxpy(int n, float a, const float* x, float* y)"
  std::string signature() const;
  bool checked() const { return options_.checked; }
  const std::string& arch() const { return options_.arch; }  // "": the CPU
  // For a GPU's kernel.
  const Cubin& built() const { return built_; }
  struct Constant {
    std::string name, symbol;
    std::vector<std::byte> bytes;
  };
  const std::vector<Constant>& constants() const { return constants_; }
  // The object that a device has loaded from built(), kept as long as the kernel; null: none yet.
  std::shared_ptr<void> loaded_on(const void* device) const;
  void keep_loaded(const void* device, std::shared_ptr<void> loaded) const;
  bool cached() const { return cached_; }  // it came from the disk cache
  std::string place() const;               // "train.lua:12"
  // The same kernel compiled for a GPU. Blocks like compile().
  Result<Cubin> cubin(const std::string& arch) const;

  // invalid: a size of 0, more than 1024 threads per block or 64 in its z, more than 65535 blocks in y or z or 2^31 - 1
  // in all, too much shared memory, or too many blocks for a cooperative launch. The limits are the same on every
  // device.
  Result<> check_shape(const LaunchShape& shape) const;
  // `arguments` has one entry per parameter. `said`: the kernel's output.
  Result<> run(const LaunchShape& shape, const std::vector<LaunchArgument>& arguments, std::string& said) const;

 private:
  Kernel() = default;
  Result<> load(const std::string& path, bool keep);
  Result<> set_constants();
  Result<> build_for_gpu(const KernelSource& source);
  // room: size of the variable in bytes; 0: unknown.
  Result<std::vector<std::byte>> constant_bytes(const KernelConstant& given, unsigned element, std::size_t room) const;
  Result<> run_checked(KernelRun& run, const std::vector<LaunchArgument>& arguments, RunReport& report) const;
  Error error_of(const Violation& v, const LaunchShape& shape, const std::vector<LaunchArgument>& arguments) const;
  std::string line_of(const void* site) const;  // " (train.lua:14)", or ""

  KernelOptions options_;
  std::string name_, source_, library_path_;
  std::vector<std::string> parameter_names_;
  std::vector<rille_abi::Parameter> parameters_;
  const rille_abi::Kernel* kernel_ = nullptr;
  void* library_ = nullptr;
  bool cached_ = false;
  std::shared_ptr<RunnerPool> pool_;
  Cubin built_;
  std::vector<Constant> constants_;
  mutable std::mutex mutex_;  // guards loaded_
  mutable std::vector<std::pair<const void*, std::shared_ptr<void>>> loaded_;
};

}  // namespace rille::device
