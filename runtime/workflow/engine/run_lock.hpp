// RunLock: lets only one process run a run. It is a file lock on <home>/runs/<id>/lock, held by an open descriptor, so
// that the lock ends with the process even if the process is killed. The file names the holder for error messages.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "runtime/core/base/result.hpp"

namespace rille::engine {

// Error invalid: not a run id. Ids are part of paths; ids from a journal are checked too, because the journal may come
// from elsewhere.
Result<> check_run_id(const std::string& id);

class RunLock {
 public:
  RunLock() = default;  // an object that holds no lock
  RunLock(RunLock&& o) noexcept : fd_(std::exchange(o.fd_, -1)), held_(std::exchange(o.held_, nullptr)), run_(o.run_) {}
  RunLock& operator=(RunLock&& o) noexcept {
    std::swap(fd_, o.fd_);
    std::swap(held_, o.held_);
    std::swap(run_, o.run_);
    return *this;
  }
  ~RunLock();

  // Takes the lock. `folder` is the run's folder, created if missing. Fails with `state` if another process, which it
  // names, has it.
  static Result<RunLock> take(const std::string& folder, const std::string& run);
  // Takes the lock in a simulation, without a file: `held` is the set of locked runs, and must outlive the lock.
  static Result<RunLock> take(std::set<std::string>& held, const std::string& run);
  // Whether any process holds the lock of the run with this folder now.
  static bool held(const std::string& folder);

 private:
  int fd_ = -1;
  std::set<std::string>* held_ = nullptr;
  std::string run_;
};

}  // namespace rille::engine
