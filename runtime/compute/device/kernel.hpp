// Kernel: a user's CUDA C++ kernel, compiled and loaded for the CPU, or compiled for a GPU architecture. Each Kernel
// object loads a separate copy of the code, so its __constant__ and __device__ variables are its own. With the option
// `apart` the code is loaded and run in a process of its own (apart/), never in this one.
//
// compile() blocks while the compiler runs; do not call it on the loop thread. run() is for the CPU and called on its
// lane; a GPU's kernel is launched by its device (executor.hpp). Other functions: any thread. Errors: see
// kernel_build.hpp; run() returns kind device, code "kernel_check", for an error in the user's kernel (checked mode,
// assert, a deadlock), and kind memory if there is no memory for stacks.
#pragma once

#include <functional>
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
constexpr unsigned grid_yz_max = 65535;           // blocks in y or z; the limit of all GPUs so far
constexpr unsigned shared_bytes_max = 227 << 10;  // the limit of an H100; a GPU may have less

// One argument of a launch, in the form that the kernel's parameter has.
struct LaunchArgument {
  void* pointer = nullptr;
  std::size_t bytes = 0;                 // size of the memory at `pointer`
  alignas(16) std::byte value[32] = {};  // the bytes of an argument passed by value
};

// Stores `v` at `at` as a value of the type `element` (rille_abi::Element); false if the type cannot represent `v`.
bool put_number(unsigned element, void* at, double v);

// Runs the kernel of a loaded library. An address in the library at which a violation happened becomes site_offset plus
// its offset in the library; sites below site_offset are source lines.
void run_loaded(const rille_abi::Kernel& kernel, const std::vector<rille_abi::Parameter>& parameters, bool checked,
                const LaunchShape& shape, const std::vector<LaunchArgument>& arguments, RunnerPool& pool,
                RunReport& report);
constexpr std::uintptr_t site_offset = std::uintptr_t{1} << 40;

class KernelProcess;  // apart/kernel_process.hpp

class Kernel {
 public:
  static Result<std::shared_ptr<Kernel>> compile(std::string_view source, const KernelOptions& options);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<rille_abi::Parameter>& parameters() const { return parameters_; }
  // The parameter's name, "x", or "argument 2" if the source gives it no name.
  std::string parameter_name(std::size_t i) const;
  // The kernel's declaration: "saxpy(int n, float a, const float* x, float* y)".
  std::string signature() const;
  bool checked() const { return options_.checked; }
  bool apart() const { return options_.apart; }              // it runs in a process of its own, which a stop kills
  const std::string& arch() const { return options_.arch; }  // "sm_90"; "": for the CPU
  // The compiled code, only of a kernel for a GPU.
  const Cubin& built() const { return built_; }
  struct Constant {
    std::string name, symbol;
    std::vector<std::byte> bytes;
  };
  const std::vector<Constant>& constants() const { return constants_; }
  // The object that `device` has loaded from built() and stored with keep_loaded(); null: not loaded yet. The Kernel
  // keeps the object until its own destruction.
  std::shared_ptr<void> loaded_on(const void* device) const;
  void keep_loaded(const void* device, std::shared_ptr<void> loaded) const;
  bool cached() const { return cached_; }  // the code came from the disk cache
  std::string place() const;               // where the source begins: "train.lua:12"
  // Compiles this kernel's source for a GPU architecture. Blocks while the compiler runs.
  Result<Cubin> cubin(const std::string& arch) const;

  // Error of kind invalid: a size of 0, more than 1024 threads per block or 64 in its z dimension, more than 65535
  // blocks in y or z, more than 2^31 - 1 blocks in all, too much shared memory, or too many blocks for a cooperative
  // launch. These limits apply on every device.
  Result<> check_shape(const LaunchShape& shape) const;
  // `arguments` has one entry per parameter. `said` receives the kernel's printf output.
  // `stopped` (empty: never stop) is called while a kernel in a process of its own runs; if it returns true, the
  // process is killed, and the launch fails with kind cancelled. A kernel in this process runs to its end.
  Result<> run(const LaunchShape& shape, const std::vector<LaunchArgument>& arguments, std::string& said,
               const std::function<bool()>& stopped = {}) const;

 private:
  Kernel() = default;
  Result<> load(const std::string& path, bool keep);
  Result<> set_constants();
  Result<> build_for_gpu(const KernelSource& source);
  // room: size of the __constant__ variable in bytes; 0: unknown.
  Result<std::vector<std::byte>> constant_bytes(const KernelConstant& given, unsigned element, std::size_t room) const;
  Error error_of(const Violation& v, const LaunchShape& shape, const std::vector<LaunchArgument>& arguments,
                 const std::function<bool()>& stopped) const;
  // The source line of a violation's site: " (train.lua:14)"; "": unknown.
  std::string line_of(const void* site, const std::function<bool()>& stopped) const;

  KernelOptions options_;
  std::string name_, source_, library_path_;
  std::vector<std::string> parameter_names_;
  std::vector<rille_abi::Parameter> parameters_;
  const rille_abi::Kernel* kernel_ = nullptr;
  void* library_ = nullptr;
  std::unique_ptr<KernelProcess> process_;  // null: the library is loaded in this process
  bool cached_ = false;
  std::shared_ptr<RunnerPool> pool_;
  Cubin built_;
  std::vector<Constant> constants_;
  mutable std::mutex mutex_;  // guards loaded_
  mutable std::vector<std::pair<const void*, std::shared_ptr<void>>> loaded_;
};

}  // namespace rille::device
