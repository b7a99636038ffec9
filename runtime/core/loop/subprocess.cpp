#include "runtime/core/loop/subprocess.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/core/loop/spawn.hpp"

namespace rille {

namespace {

struct Fd {
  int value = -1;
  Fd() = default;
  explicit Fd(int v) : value(v) {}
  Fd(Fd&& o) noexcept : value(std::exchange(o.value, -1)) {}
  Fd& operator=(Fd&& o) noexcept {
    std::swap(value, o.value);
    return *this;
  }
  ~Fd() {
    if (value >= 0) close(value);
  }
  int release() { return std::exchange(value, -1); }
};

using Output = SubprocessOptions::Output;

// Connects descriptor `target` of the child as `how` says. For Output::stream, `mine` receives this process's end.
Result<> prepare(Spawn& program, Output how, int target, const std::string& path, Fd& mine, std::vector<Fd>& theirs) {
  if (how == Output::inherit) return {};
  Fd fd;
  if (how == Output::stream) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return errno_error("open", "socket pair", errno);
    mine = Fd(pair[0]);
    fd = Fd(pair[1]);
  } else {
    const char* file = how == Output::null ? "/dev/null" : path.c_str();
    int flags = how == Output::file ? O_WRONLY | O_CREAT | O_APPEND : target == 0 ? O_RDONLY : O_WRONLY;
    fd = Fd(open(file, flags | O_CLOEXEC, 0600));
    if (fd.value < 0) return errno_error("open", file, errno);
  }
  program.files.emplace_back(fd.value, target);
  theirs.push_back(std::move(fd));
  return {};
}

}  // namespace

std::string ExitStatus::text() const {
  if (signal) return fmt::format("signal {} ({})", signal, strsignal(signal));
  return fmt::format("exit code {}", code);
}

Result<std::unique_ptr<Subprocess>> Subprocess::start(Loop& loop, const SubprocessOptions& options) {
  Fd mine[3];
  std::vector<Fd> theirs;
  Spawn program{options.argv, options.env, options.without, options.directory, {}, options.detached, false};
  RILLE_CHECK(prepare(program, options.in, 0, {}, mine[0], theirs));
  RILLE_CHECK(prepare(program, options.out, 1, options.out_path, mine[1], theirs));
  RILLE_CHECK(prepare(program, options.err, 2, options.err_path, mine[2], theirs));
  RILLE_TRY(pid_t pid, spawn(program));
  std::unique_ptr<Subprocess> child(new Subprocess(loop, pid, options.kill_on_drop));
  child->pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (child->pidfd_ < 0) {
    if (errno == ESRCH) return stolen_child(pid);
    return errno_error("follow process", options.argv[0], errno);
  }
  child->poll_ = new uv_poll_t;
  uv_poll_init(loop.uv(), child->poll_, child->pidfd_);
  child->poll_->data = child.get();
  uv_poll_start(child->poll_, UV_READABLE, [](uv_poll_t* p, int, int) {
    if (p->data) static_cast<Subprocess*>(p->data)->reap();
  });
  std::unique_ptr<Stream>* streams[3] = {&child->in_, &child->out_, &child->err_};
  for (int i = 0; i < 3; ++i)
    if (mine[i].value >= 0) { RILLE_TRY(*streams[i], Stream::adopt(loop, mine[i].release())); }
  return child;
}

void Subprocess::reap() {
  siginfo_t info{};
  const bool known = waitid(P_PIDFD, static_cast<id_t>(pidfd_), &info, WEXITED | WNOHANG) == 0;
  if (known ? info.si_pid == 0 : errno != ECHILD) return;
  ExitStatus status;
  if (known && info.si_code == CLD_EXITED) status.code = info.si_status;
  else if (known) status.signal = info.si_status;
  status_ = known ? Result<ExitStatus>(status) : stolen_child(pid_);
  uv_poll_stop(poll_);
  for (auto& waiter : std::exchange(waiters_, {})) waiter.set(*status_);
}

Subprocess::~Subprocess() {
  if (!status_ && kill_on_drop_) {
    signal(SIGKILL).ok();
    // Does not block for long: a killed child ends promptly. Not by the pidfd, which libuv has made non-blocking.
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
  }
  if (poll_) {
    poll_->data = nullptr;
    uv_poll_stop(poll_);
    uv_close(reinterpret_cast<uv_handle_t*>(poll_), [](uv_handle_t* h) { delete reinterpret_cast<uv_poll_t*>(h); });
  }
  if (pidfd_ >= 0) close(pidfd_);
}

Async<ExitStatus> Subprocess::wait(CancelToken token) {
  if (status_) co_return *status_;
  Future<Result<ExitStatus>> done(loop_);
  waiters_.push_back(done);
  auto registration = token.on_cancel([done](const Error& why) { done.set(why); });
  co_return co_await done;
}

Result<> Subprocess::signal(int number) {
  if (status_) return {};
  if (syscall(SYS_pidfd_send_signal, pidfd_, number, nullptr, 0) < 0 && errno != ESRCH)
    return errno_error("signal process", std::to_string(pid_), errno);
  return {};
}

}  // namespace rille
