// One runner per run: a lock on <home>/runs/<id>/lock, held by an open descriptor, so that it ends with its process
// even if that is killed. The file names the holder, for messages.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "runtime/core/base/result.hpp"

namespace rille::engine {

class RunLock {
 public:
  RunLock() = default;  // holds nothing
  RunLock(RunLock&& o) noexcept : fd_(std::exchange(o.fd_, -1)), held_(std::exchange(o.held_, nullptr)), run_(o.run_) {}
  RunLock& operator=(RunLock&& o) noexcept {
    std::swap(fd_, o.fd_);
    std::swap(held_, o.held_);
    std::swap(run_, o.run_);
    return *this;
  }
  ~RunLock();

  // `folder` is the run's home, created if missing. state: another process has it (named).
  static Result<RunLock> take(const std::string& folder, const std::string& run);
  // In a simulated world: `held` is the set of runs with a runner. It outlives the lock.
  static Result<RunLock> take(std::set<std::string>& held, const std::string& run);
  // Whether any process holds it now.
  static bool held(const std::string& folder);

 private:
  int fd_ = -1;
  std::set<std::string>* held_ = nullptr;
  std::string run_;
};

}  // namespace rille::engine
