// Subprocess: a child process tracked by a pidfd, so that no SIGCHLD handler is needed and a reused id is never
// hit. Standard input and output are one socket pair each (no SIGPIPE); standard error is a stream of its own,
// a file, or inherited. Destroying a Subprocess ends the child only with kill_on_drop; a detached child (in its
// own session) outlives us and is adopted by init.
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
  std::vector<std::string> without;                      // variables to remove
  std::string directory;                                 // "": ours
  bool detached = false;                                 // start a new session
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

  // Resolves when the child has ended; may be called again. Cancelling only stops the wait.
  Async<ExitStatus> wait(CancelToken token = {});
  Result<> signal(int number);  // succeeds too if the child has ended

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
