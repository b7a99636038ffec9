// KernelProcess: one kernel, loaded and run in a confined process (confine.hpp), for scripts that are not trusted. The
// process has no files, no network and no environment, and ends with this object or with the runner.
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
namespace apart {
struct Loaded;
}

class KernelProcess {
 public:
  static constexpr int processes_max = 64;  // per runner

  // The library must have a symbol for each of the options' constants, at most symbols_max.
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
  KernelProcess(std::string name, std::function<void(std::int64_t ns)> computed);
  Result<> begin(const std::string& library, const KernelOptions& options);
  Result<> await_loaded(apart::Loaded& loaded, const KernelOptions& options);
  Result<> read_memory(std::size_t at, void* to, std::size_t bytes) const;
  // Waits for a message of exactly `bytes`.
  Result<> receive(void* message, std::size_t bytes, const std::function<bool()>& stopped);
  Error ended();
  void end_child();

  const std::string name_;
  const std::function<void(std::int64_t ns)> computed_;  // KernelOptions::computed
  std::unique_ptr<KernelChild> child_;                   // null: ended
  int socket_ = -1, memory_ = -1;
  bool checked_ = false;
  // processor time of the process counted so far, by KernelOptions::computed and ProcessorClock::Also
  std::int64_t counted_ns_ = 0;
  std::int64_t used_ns_ = 0;  // in all, once it has ended
  std::vector<rille_abi::Parameter> parameters_;
  std::vector<rille_abi::Symbol> symbols_;
};

}  // namespace rille::device
