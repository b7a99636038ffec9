// Subprocess: a child process tracked by a pidfd, so that no SIGCHLD handler is needed and another process with a
// reused id is never signalled. A standard stream that is Output::stream is a socket pair (no SIGPIPE). Destroying a
// Subprocess kills the child only with kill_on_drop. A detached child runs in a new session; it outlives this process
// and init adopts it.
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
  std::vector<std::pair<std::string, std::string>> env;  // variables added to the inherited environment
  std::vector<std::string> without;                      // inherited variables that the child does not get
  std::string directory;                                 // the child's working directory; "": the current directory
  bool detached = false;                                 // start the child in a new session
  bool kill_on_drop = false;                             // send SIGKILL when the Subprocess is destroyed
  enum class Output { stream, null, inherit, file };
  Output in = Output::null;  // one of stream, null, inherit
  Output out = Output::null;
  Output err = Output::inherit;
  std::string out_path, err_path;  // files for Output::file; opened for appending
};

struct ExitStatus {
  int code = 0;  // the exit code if signal is 0; otherwise meaningless
  int signal = 0;
  std::string text() const;  // such as "exit code 3" or "signal 9 (Killed)"
};

class Subprocess {
 public:
  // Error `io`: the child cannot be started (code "errno 2": there is no such program). Error `invalid`: argv is empty.
  static Result<std::unique_ptr<Subprocess>> start(Loop& loop, const SubprocessOptions& options);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }
  Stream* in() { return in_.get(); }
  Stream* out() { return out_.get(); }
  Stream* err() { return err_.get(); }
  void close_in() { in_.reset(); }

  // Resolves when the child has ended; may be called again. Cancelling stops only the wait, not the child.
  Async<ExitStatus> wait(CancelToken token = {});
  Result<> signal(int number);  // sends a signal; also succeeds if the child has already ended

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
