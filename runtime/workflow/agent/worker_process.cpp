#include "runtime/workflow/agent/worker_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/core/loop/process_tree.hpp"
#include "runtime/core/loop/spawn.hpp"

namespace rille::agent {

Result<StartedWorker> start_worker(const WorkerStart& start) {
  int output[2], line[2] = {-1, -1};
  if (pipe2(output, O_CLOEXEC) < 0) return errno_error("open", "pipe", errno);
  store::Fd output_in(output[0]), output_out(output[1]);
  if (start.line && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) < 0)
    return errno_error("open", "socket pair", errno);
  store::Fd line_ours(line[0]), line_theirs(line[1]);
  const char* const input = start.input.empty() ? "/dev/null" : start.input.c_str();
  store::Fd in(open(input, O_RDONLY | O_CLOEXEC));
  if (!in.valid()) return errno_error("open", input, errno);
  Spawn program{start.argv, start.env, {}, start.directory, {}, true, true};
  const bool standard = start.line && start.standard;
  program.files = {{standard ? line_theirs.get() : in.get(), 0},
                   {standard ? line_theirs.get() : output_out.get(), 1},
                   {output_out.get(), 2}};
  if (start.line && !standard) program.files.emplace_back(line_theirs.get(), 3);
  StartedWorker out;
  RILLE_TRY(out.pid, spawn(program));
  out.output = std::move(output_in);
  out.line = std::move(line_ours);
  return out;
}

Result<std::unique_ptr<Children>> Children::watch(Loop& loop, std::function<void(int)> on_signal) {
  std::unique_ptr<Children> self(new Children(std::move(on_signal)));
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, s);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  self->fd_ = store::Fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!self->fd_.valid()) return errno_error("open", "signalfd", errno);
  self->poll_ = new uv_poll_t;
  uv_poll_init(loop.uv(), self->poll_, self->fd_.get());
  self->poll_->data = self.get();
  uv_poll_start(self->poll_, UV_READABLE, [](uv_poll_t* p, int, int) {
    if (p->data) static_cast<Children*>(p->data)->read_signals();
  });
  return self;
}

Children::~Children() {
  if (!poll_) return;
  poll_->data = nullptr;
  uv_poll_stop(poll_);
  uv_close(reinterpret_cast<uv_handle_t*>(poll_), [](uv_handle_t* h) { delete reinterpret_cast<uv_poll_t*>(h); });
}

void Children::read_signals() {
  signalfd_siginfo info{};
  bool child = false;
  while (read(fd_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) child = true;
    else on_signal_(static_cast<int>(info.ssi_signo));
  }
  if (child) reap();
}

void Children::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    auto it = waiting_.find(pid);
    if (it == waiting_.end()) continue;  // an orphan that the kernel gave to this subreaper
    auto fn = std::move(it->second);
    waiting_.erase(it);
    ExitStatus exit;
    if (WIFSIGNALED(status)) exit.signal = WTERMSIG(status);
    else exit.code = WEXITSTATUS(status);
    fn(exit);
  }
}

Result<> Children::end_all(const std::string& environment_entry) {
  waiting_.clear();
  ProcessMatch match{{getpid()}, environment_entry, false};
  RILLE_CHECK(kill_processes(match, 10'000));
  while (waitpid(-1, nullptr, WNOHANG) > 0) {}
  return {};
}

}  // namespace rille::agent
