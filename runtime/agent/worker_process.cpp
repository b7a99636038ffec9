#include "runtime/agent/worker_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/loop/process_tree.hpp"

extern char** environ;

namespace rille::agent {

namespace {

std::vector<std::string> environment(const WorkerStart& start) {
  std::vector<std::string> out;
  for (char** e = environ; e && *e; ++e) {
    std::string_view entry(*e), name = entry.substr(0, entry.find('='));
    bool replaced = false;
    for (const auto& [key, value] : start.env) replaced = replaced || key == name;
    if (!replaced) out.emplace_back(entry);
  }
  for (const auto& [key, value] : start.env) out.push_back(key + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

struct Plan {
  char *const *argv, *const *env;
  const char* directory;
  int null, output, line, report;
  pid_t parent;
};

// Between fork and exec: system calls only.
[[noreturn]] void become(const Plan& plan) {
  auto fail = [&] {
    int e = errno;
    ssize_t ignored = write(plan.report, &e, sizeof e);
    _exit(ignored > 0 ? 126 : 127);
  };
  sigset_t none;
  sigemptyset(&none);
  for (int s = 1; s < 32; ++s) signal(s, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(127);  // the agent ended before the line above
  if (chdir(plan.directory) < 0) fail();
  // Out of the way of 0 to 3 first: any of ours may have such a number.
  int null = fcntl(plan.null, F_DUPFD_CLOEXEC, 10), output = fcntl(plan.output, F_DUPFD_CLOEXEC, 10);
  int line = plan.line >= 0 ? fcntl(plan.line, F_DUPFD_CLOEXEC, 10) : -1;
  int report = fcntl(plan.report, F_DUPFD_CLOEXEC, 10);
  if (dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) fail();
  if (line >= 0 ? dup2(line, 3) < 0 : false) fail();
  environ = const_cast<char**>(plan.env);
  execvp(plan.argv[0], plan.argv);
  int e = errno;
  ssize_t ignored = write(report, &e, sizeof e);
  _exit(ignored > 0 ? 126 : 127);
}

}  // namespace

Result<StartedWorker> start_worker(const WorkerStart& start) {
  if (start.argv.empty()) return make_error(ErrorKind::invalid, "a program to start needs a name: argv is empty");
  int output[2], report[2], line[2] = {-1, -1};
  if (pipe2(output, O_CLOEXEC) < 0) return errno_error("open", "pipe", errno);
  store::Fd output_in(output[0]), output_out(output[1]);
  if (pipe2(report, O_CLOEXEC) < 0) return errno_error("open", "pipe", errno);
  store::Fd report_in(report[0]), report_out(report[1]);
  if (start.line && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) < 0)
    return errno_error("open", "socket pair", errno);
  store::Fd line_ours(line[0]), line_theirs(line[1]);
  store::Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));

  std::vector<std::string> argv = start.argv, env = environment(start);
  std::vector<char*> argv_p = pointers(argv), env_p = pointers(env);
  Plan plan{argv_p.data(), env_p.data(), start.directory.c_str(), null.get(), output_out.get(), line_theirs.get(),
            report_out.get(), getpid()};
  pid_t pid = fork();
  if (pid < 0) return errno_error("start", start.argv[0], errno);
  if (pid == 0) become(plan);
  report_out = store::Fd();
  int failed = 0;
  ssize_t n;
  while ((n = read(report_in.get(), &failed, sizeof failed)) < 0 && errno == EINTR) {
  }
  if (n > 0) {
    waitpid(pid, nullptr, 0);
    Error e = errno_error("start", start.argv[0], failed);
    if (failed == ENOENT)
      e.hint = "is it installed on the instance and in PATH, and does '" + start.directory + "' exist?";
    return e;
  }
  StartedWorker out;
  out.pid = pid;
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
    if (it == waiting_.end()) continue;  // an orphan that came to us
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
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  return {};
}

}  // namespace rille::agent
