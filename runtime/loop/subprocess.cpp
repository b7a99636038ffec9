#include "runtime/loop/subprocess.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;

namespace rille {

namespace {

struct Fd {
  int value = -1;
  Fd() = default;
  explicit Fd(int v) : value(v) {}
  Fd(Fd&& o) noexcept : value(std::exchange(o.value, -1)) {}
  Fd& operator=(Fd&& o) noexcept { std::swap(value, o.value); return *this; }
  ~Fd() { if (value >= 0) close(value); }
  int release() { return std::exchange(value, -1); }
};

struct Actions {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  Actions() { posix_spawn_file_actions_init(&files); posix_spawnattr_init(&attributes); }
  ~Actions() { posix_spawn_file_actions_destroy(&files); posix_spawnattr_destroy(&attributes); }
};

using Output = SubprocessOptions::Output;

// Prepares descriptor `target` of the child; ours is left in `mine` for streams.
Result<> prepare(Actions& actions, Output how, int target, const std::string& path, Fd& mine, std::vector<Fd>& theirs) {
  if (how == Output::inherit) return {};
  if (how == Output::null) {
    posix_spawn_file_actions_addopen(&actions.files, target, "/dev/null", target == 0 ? O_RDONLY : O_WRONLY, 0);
    return {};
  }
  if (how == Output::file) {
    Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (file.value < 0) return errno_error("open", path, errno);
    posix_spawn_file_actions_adddup2(&actions.files, file.value, target);
    theirs.push_back(std::move(file));
    return {};
  }
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return errno_error("open", "socket pair", errno);
  mine = Fd(pair[0]);
  theirs.emplace_back(pair[1]);
  posix_spawn_file_actions_adddup2(&actions.files, pair[1], target);
  return {};
}

std::vector<std::string> environment(const SubprocessOptions& options) {
  std::vector<std::string> out;
  for (char** e = environ; e && *e; ++e) {
    std::string_view entry(*e);
    std::string_view name = entry.substr(0, entry.find('='));
    bool replaced = false;
    for (const auto& [key, value] : options.env) replaced = replaced || key == name;
    if (!replaced) out.emplace_back(entry);
  }
  for (const auto& [key, value] : options.env) out.push_back(key + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::string ExitStatus::text() const {
  if (signal) return fmt::format("signal {} ({})", signal, strsignal(signal));
  return fmt::format("exit code {}", code);
}

Result<std::unique_ptr<Subprocess>> Subprocess::start(Loop& loop, const SubprocessOptions& options) {
  if (options.argv.empty()) return make_error(ErrorKind::invalid, "a program to start needs a name: argv is empty");
  Actions actions;
  Fd mine[3];
  std::vector<Fd> theirs;
  RILLE_CHECK(prepare(actions, options.in, 0, {}, mine[0], theirs));
  RILLE_CHECK(prepare(actions, options.out, 1, options.out_path, mine[1], theirs));
  RILLE_CHECK(prepare(actions, options.err, 2, options.err_path, mine[2], theirs));
  if (!options.directory.empty()) posix_spawn_file_actions_addchdir_np(&actions.files, options.directory.c_str());

  // The child starts with no signal blocked or ignored, whatever its host does.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&actions.attributes, &none);
  posix_spawnattr_setsigdefault(&actions.attributes, &all);
  short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (options.detached) flags |= POSIX_SPAWN_SETSID;
  posix_spawnattr_setflags(&actions.attributes, flags);

  std::vector<std::string> argv = options.argv, env = environment(options);
  pid_t pid = 0;
  int rc = posix_spawnp(&pid, argv[0].c_str(), &actions.files, &actions.attributes, pointers(argv).data(),
                        pointers(env).data());
  if (rc != 0) {
    Error e = errno_error("start", argv[0], rc);
    if (rc == ENOENT)
      e.hint = options.directory.empty() ? "is it installed and in PATH?"
                                         : "does '" + options.directory + "' exist, and the program in PATH?";
    return e;
  }
  std::unique_ptr<Subprocess> child(new Subprocess(loop, pid, options.kill_on_drop));
  child->pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (child->pidfd_ < 0) return errno_error("follow process", argv[0], errno);
  child->poll_ = new uv_poll_t;
  uv_poll_init(loop.uv(), child->poll_, child->pidfd_);
  child->poll_->data = child.get();
  uv_poll_start(child->poll_, UV_READABLE, [](uv_poll_t* p, int, int) {
    if (p->data) static_cast<Subprocess*>(p->data)->reap();
  });
  std::unique_ptr<Stream>* streams[3] = {&child->in_, &child->out_, &child->err_};
  for (int i = 0; i < 3; ++i)
    if (mine[i].value >= 0) {
      RILLE_TRY(*streams[i], Stream::adopt(loop, mine[i].release()));
    }
  return child;
}

void Subprocess::reap() {
  siginfo_t info{};
  if (waitid(P_PIDFD, static_cast<id_t>(pidfd_), &info, WEXITED | WNOHANG) < 0 && errno != ECHILD) return;
  ExitStatus status;
  if (info.si_pid == 0 && errno != ECHILD) return;
  if (info.si_code == CLD_EXITED) status.code = info.si_status;
  else status.signal = info.si_status;
  status_ = status;
  uv_poll_stop(poll_);
  for (auto& waiter : std::exchange(waiters_, {})) waiter.set(status);
}

Subprocess::~Subprocess() {
  if (!status_ && kill_on_drop_) {
    signal(SIGKILL).ok();
    siginfo_t info{};
    waitid(P_PIDFD, static_cast<id_t>(pidfd_), &info, WEXITED);  // a killed child ends at once
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
