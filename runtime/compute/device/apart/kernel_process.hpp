// KernelProcess: one kernel, loaded and run in a process of its own, which ends with this object or with the runner. So
// whatever the kernel does, this process goes on. With options.confined, for scripts that are not trusted, the process
// has no files and no network (confine.hpp). Each argument's memory ends at a guard page (guard.hpp).
// start() and run() block: call start() on any thread but the loop's, run() on the lane. The process's answers are
// untrusted and are checked here. Errors: device, if the program rille-kernel is missing, if the system cannot confine
// it, or if the process has ended; quota: too many kernels; cancelled: it was stopped; otherwise as load_library().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/compute/device/kernel.hpp"

namespace rille::device {

class KernelChild;
class ArgumentRanges;
namespace apart {
struct Loaded;
struct Launch;
}  // namespace apart

class KernelProcess {
 public:
  static constexpr int confined_max = 64, trusted_max = 512;  // per runner

  // The library must have a symbol for each of the options' constants, at most symbols_max. A trusted process that was
  // stopped is started again at the next launch; its __device__ variables begin anew.
  static Result<std::unique_ptr<KernelProcess>> start(const std::string& name, const std::string& library,
                                                      const KernelOptions& options);
  ~KernelProcess();
  KernelProcess(const KernelProcess&) = delete;
  KernelProcess& operator=(const KernelProcess&) = delete;

  const std::vector<rille_abi::Parameter>& parameters() const { return parameters_; }
  const std::vector<rille_abi::Symbol>& symbols() const { return symbols_; }  // without names and addresses
  Result<> set_constant(std::size_t symbol, const std::vector<std::byte>& bytes);

  struct Texts {  // storage for the texts that a report points to
    std::string text, file;
  };
  Result<> run(const LaunchShape& shape, const std::vector<LaunchArgument>& arguments,
               const std::function<bool()>& stopped, RunReport& report, Texts& texts);

 private:
  KernelProcess(std::string name, std::string library, const KernelOptions& options);
  Result<> begin(const KernelOptions& options);
  Result<> begin_again();
  Result<> send_constant(std::size_t symbol, const std::vector<std::byte>& bytes);
  Result<> put_arguments(const apart::Launch& ask, const ArgumentRanges& ranges);
  Result<> await_loaded(apart::Loaded& loaded, const KernelOptions& options);
  Result<> read_memory(std::size_t at, void* to, std::size_t bytes) const;
  // Waits for a message of exactly `bytes`.
  Result<> receive(void* message, std::size_t bytes, const std::function<bool()>& stopped);
  Error ended();
  void end_child();

  const std::string name_, library_;
  const KernelOptions options_;
  std::vector<std::pair<std::size_t, std::vector<std::byte>>> constants_;  // as they were set, by symbol
  std::unique_ptr<KernelChild> child_;                                     // null: ended
  int socket_ = -1, memory_ = -1;
  // processor time of the process counted so far, by KernelOptions::computed and ProcessorClock::Also
  std::int64_t counted_ns_ = 0;
  std::int64_t used_ns_ = 0;  // in all, once it has ended
  std::vector<rille_abi::Parameter> parameters_;
  std::vector<rille_abi::Symbol> symbols_;
};

}  // namespace rille::device
