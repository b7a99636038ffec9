// One runner per run: a lock on <home>/runs/<id>/lock, held by an open descriptor, so that it ends with its process,
// also a killed one. The file names the holder, for messages.
#pragma once

#include <string>
#include <utility>

#include "runtime/base/result.hpp"

namespace rille::engine {

class RunLock {
 public:
  RunLock() = default;                 // holds nothing
  RunLock(RunLock&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  RunLock& operator=(RunLock&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~RunLock();

  // `folder` is the run's home, made when missing. state: another process has it (named).
  static Result<RunLock> take(const std::string& folder, const std::string& run);
  // Whether any process holds it now.
  static bool held(const std::string& folder);

 private:
  int fd_ = -1;
};

}  // namespace rille::engine
