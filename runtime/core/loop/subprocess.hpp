// Subprocess: a child process followed through a pidfd, so that no SIGCHLD handler is needed and no other process
// can be hit by a reused id. Its standard input and output are one socket pair each (never a SIGPIPE); standard
// error is its own stream, a file, or inherited. Destroying a Subprocess does not end the child unless kill_on_drop
// is set; a detached child (its own session) outlives us and is adopted by init.
// Loop thread only.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/loop/stream.hpp"

namespace rille {

struct SubprocessOptions {
  std::vector<std::string> argv;                         // argv[0] is looked up in PATH
  std::vector<std::pair<std::string, std::string>> env;  // added to the inherited environment
  std::vector<std::string> without;                      // names that are not inherited
  std::string directory;                                 // "" = ours
  bool detached = false;                                 // own session
  bool kill_on_drop = false;                             // SIGKILL when the Subprocess is destroyed
  enum class Output { stream, null, inherit, file };
  Output in = Output::null;  // stream, null or inherit
  Output out = Output::null;
  Output err = Output::inherit;
  std::string out_path, err_path;  // for Output::file; opened for appending
};

struct ExitStatus {
  int code = 0;  // exit code when signal is 0
  int signal = 0;
  std::string text() const;  // "exit code 3", "signal 9 (Killed)"
};

class Subprocess {
 public:
  // io (code "errno 2" when there is no such program) or invalid (empty argv).
  static Result<std::unique_ptr<Subprocess>> start(Loop& loop, const SubprocessOptions& options);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }
  Stream* in() { return in_.get(); }
  Stream* out() { return out_.get(); }
  Stream* err() { return err_.get(); }
  void close_in() { in_.reset(); }

  // Resolves when the child has ended; may be called again. Cancelling stops waiting only.
  Async<ExitStatus> wait(CancelToken token = {});
  Result<> signal(int number);  // to the child; success when it has ended already

 private:
  Subprocess(Loop& loop, pid_t pid, bool kill_on_drop) : loop_(loop), pid_(pid), kill_on_drop_(kill_on_drop) {}
  void reap();

  Loop& loop_;
  pid_t pid_;
  bool kill_on_drop_;
  int pidfd_ = -1;
  uv_poll_t* poll_ = nullptr;
  std::optional<Result<ExitStatus>> status_;
  std::vector<Future<Result<ExitStatus>>> waiters_;
  std::unique_ptr<Stream> in_, out_, err_;
};

}  // namespace rille
