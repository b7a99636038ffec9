// start_worker starts a process in its own session, with standard output and error in one pipe, and optionally a line
// (a socket) to the agent at descriptor 3. The kernel kills the process when the thread that started it ends. Children
// reaps every ended child; the agent is a subreaper and must also reap orphans, for which it has no pidfd. Loop thread
// only.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/loop/loop.hpp"
#include "runtime/core/loop/subprocess.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::agent {

struct WorkerStart {
  std::vector<std::string> argv;                         // argv[0] is looked up in PATH
  std::vector<std::pair<std::string, std::string>> env;  // added to this process's environment
  std::string directory;
  std::string input;  // path of the file that is standard input; "": an empty one
  bool line = false;
  bool standard = false;  // the line is standard input and output, because a container has no descriptor 3
};

struct StartedWorker {
  pid_t pid = 0;
  store::Fd output, line;  // the agent's ends of the output pipe and of the line
};

// Starts a worker. Fails with `io`; its code is "errno 2" if the program or directory does not exist.
Result<StartedWorker> start_worker(const WorkerStart& start);

// SIGCHLD and the signals that end an agent, read from a signalfd: no handler is installed.
class Children {
 public:
  // Blocks the signals in this thread and in threads that it starts later.
  static Result<std::unique_ptr<Children>> watch(Loop& loop, std::function<void(int signal)> on_signal);
  ~Children();
  void on_exit(pid_t pid, std::function<void(ExitStatus)> fn) { waiting_[pid] = std::move(fn); }
  // Kills and reaps all descendants of this process, and all processes that have this entry in their environment.
  Result<> end_all(const std::string& environment_entry);

 private:
  explicit Children(std::function<void(int)> on_signal) : on_signal_(std::move(on_signal)) {}
  void read_signals();
  void reap();

  std::function<void(int)> on_signal_;
  std::map<pid_t, std::function<void(ExitStatus)>> waiting_;
  store::Fd fd_;
  uv_poll_t* poll_ = nullptr;
};

}  // namespace rille::agent
