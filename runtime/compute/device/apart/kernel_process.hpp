// KernelProcess: one kernel, loaded and run in a confined process (confine.hpp), for scripts that are not trusted. The
// process has no files, no network, no environment, and ends with this object or with the runner.
//
// start() and run() block: start() on any thread but the loop's, run() on the lane. What the process answers is
// hostile, and checked here. Errors: device, if the program rille-kernel is missing, if the system cannot confine it,
// or if the process has ended; quota: too many kernels; cancelled: run() was stopped; otherwise as load_library().
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compute/device/kernel.hpp"

namespace rille::device {

class KernelProcess {
 public:
  static constexpr int processes_max = 64;  // in one runner

  static Result<std::unique_ptr<KernelProcess>> start(const std::string& name, const std::string& library,
                                                      bool checked);
  ~KernelProcess();
  KernelProcess(const KernelProcess&) = delete;
  KernelProcess& operator=(const KernelProcess&) = delete;

  const std::vector<rille_abi::Parameter>& parameters() const { return parameters_; }
  const std::vector<rille_abi::Symbol>& symbols() const { return symbols_; }  // without names and addresses
  Result<> set_constant(std::size_t symbol, const std::vector<std::byte>& bytes);

  struct Texts {  // what pointers of a report point to
    std::string text, file;
  };
  Result<> run(const LaunchShape& shape, const std::vector<LaunchArgument>& arguments,
               const std::function<bool()>& stopped, RunReport& report, Texts& texts);

 private:
  class Child;
  explicit KernelProcess(std::string name);
  Result<> begin(const std::string& library, bool checked);
  Result<> read_memory(std::size_t at, void* to, std::size_t bytes) const;
  // Waits for a message of exactly `bytes`.
  Result<> receive(void* message, std::size_t bytes, const std::function<bool()>& stopped);
  Error ended();

  const std::string name_;
  std::unique_ptr<Child> child_;  // null: ended
  int socket_ = -1, memory_ = -1;
  std::vector<rille_abi::Parameter> parameters_;
  std::vector<rille_abi::Symbol> symbols_;
};

// The command prefix that runs a compiler confined: it can read the system's folders and `readable`, and write below
// `folder`.
Result<std::vector<std::string>> confined_compiler(const std::string& folder, const std::vector<std::string>& readable);
// The names of all variables of this process's environment except `kept`: they are removed for a confined process.
std::vector<std::string> environment_without(std::initializer_list<std::string_view> kept);

}  // namespace rille::device
