#include "runtime/core/loop/spawn.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/core/loop/core_limit.hpp"

extern char** environ;

namespace rille {

namespace {

std::vector<std::string> environment(const Spawn& what) {
  std::vector<std::string> out;
  for (char** e = environ; e && *e; ++e) {
    std::string_view entry(*e), name = entry.substr(0, entry.find('='));
    bool replaced = std::find(what.without.begin(), what.without.end(), name) != what.without.end();
    for (const auto& [key, value] : what.env) replaced = replaced || key == name;
    if (!replaced) out.emplace_back(entry);
  }
  for (const auto& [key, value] : what.env) out.push_back(key + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

// Looks for the program as execvp does, but in the child's PATH: this process's PATH must not change, even briefly.
std::string find_program(const std::string& name, const std::vector<std::string>& env) {
  if (name.find('/') != std::string::npos) return name;
  std::string path = "/bin:/usr/bin";
  for (const std::string& entry : env)
    if (entry.starts_with("PATH=")) path = entry.substr(5);
  for (std::size_t begin = 0; begin <= path.size();) {
    std::size_t end = std::min(path.find(':', begin), path.size());
    std::string found = path.substr(begin, end - begin) + "/" + name;
    struct stat st {};
    if (stat(found.c_str(), &st) == 0 && S_ISREG(st.st_mode) && access(found.c_str(), X_OK) == 0) return found;
    begin = end + 1;
  }
  return {};
}

struct Plan {
  const char* program;
  char *const *argv, *const *env;
  const Spawn* what;
  int* moved;  // one descriptor number per entry of `files`; memory for the child, which must not allocate
  pid_t parent;
  int report[2];  // a pipe: the child writes its errno into it; exec closes it
};

constexpr int moved_from = 10;  // above all descriptor numbers that a child gets

// Runs in the child between vfork and exec, so it makes system calls only and changes nothing in the parent's memory
// but the plan. Errors return through a pipe, because TSan turns vfork into fork. After a real vfork the parent
// continues after the exec, so the pipe is already readable then.
#ifdef __SANITIZE_THREAD__
constexpr int report_flags = O_CLOEXEC;
#else
constexpr int report_flags = O_CLOEXEC | O_NONBLOCK;
#endif

// Closes all descriptors from `first` on when the program is executed: descriptors of other code in this process may
// lack O_CLOEXEC.
void close_at_exec(unsigned first) {
  if (syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  struct rlimit most {};  // before Linux 5.11
  getrlimit(RLIMIT_NOFILE, &most);
  for (unsigned fd = first; fd < std::min<rlim_t>(most.rlim_cur, 1 << 16); ++fd)
    fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
}

[[noreturn]] void become(Plan& plan) {
  int report = plan.report[1];
  auto fail = [&report] {
    int failed = errno ? errno : EINVAL;
    while (write(report, &failed, sizeof failed) < 0 && errno == EINTR) {}
    _exit(127);
  };
  const Spawn& what = *plan.what;
  for (int s = 1; s < NSIG; ++s) signal(s, SIG_DFL);
  restore_core_limit();
  if (what.session) setsid();
  if (what.die_with_us) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) _exit(127);  // the parent ended before prctl took effect
  }
  if (!what.directory.empty() && chdir(what.directory.c_str()) < 0) fail();
  // First move the descriptors above the numbers that the child gets, since the two ranges may overlap.
  if (int moved = fcntl(report, F_DUPFD_CLOEXEC, moved_from); moved >= 0) report = moved;
  else fail();
  for (std::size_t i = 0; i < what.files.size(); ++i)
    if ((plan.moved[i] = fcntl(what.files[i].first, F_DUPFD_CLOEXEC, moved_from)) < 0) fail();
  for (std::size_t i = 0; i < what.files.size(); ++i)
    if (dup2(plan.moved[i], what.files[i].second) < 0) fail();
  int last = STDERR_FILENO;
  for (const auto& [from, to] : what.files) last = std::max(last, to);
  close_at_exec(static_cast<unsigned>(last) + 1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(plan.program, plan.argv, plan.env);
  fail();
  _exit(127);
}

[[gnu::noinline]] pid_t start(Plan& plan) {
  pid_t pid = vfork();
  if (pid == 0) become(plan);
  return pid;
}

// Waits until the child has called exec. Returns the child's errno, or 0 after a successful exec.
int wait_for_exec(const Plan& plan) {
  int failed = 0;
  ssize_t n;
  while ((n = read(plan.report[0], &failed, sizeof failed)) < 0 && errno == EINTR) {}
  return n == sizeof failed ? failed : 0;
}

}  // namespace

Result<pid_t> spawn(const Spawn& what) {
  if (what.argv.empty()) return make_error(ErrorKind::invalid, "cannot start a program without a name: argv is empty");
  std::vector<std::string> argv = what.argv, env = environment(what);
  std::vector<char*> argv_p = pointers(argv), env_p = pointers(env);
  std::vector<int> moved(what.files.size());
  std::string program = find_program(argv[0], env);
  Plan plan{program.c_str(), argv_p.data(), env_p.data(), &what, moved.data(), getpid(), {-1, -1}};
  if (pipe2(plan.report, report_flags) < 0) return errno_error("start", argv[0], errno);
  // Block all signals: the host program's signal handlers must not run in the child, which shares this process's
  // memory.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = program.empty() ? -1 : start(plan);
  int failed = program.empty() ? ENOENT : pid < 0 ? errno : 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  close(plan.report[1]);
  if (!failed) failed = wait_for_exec(plan);
  close(plan.report[0]);
  if (!failed) return pid;
  if (pid > 0) waitpid(pid, nullptr, 0);
  Error e = errno_error("start", argv[0], failed);
  if (failed == ENOENT)
    e.hint = what.directory.empty() ? "is it installed and in PATH?"
                                    : "does '" + what.directory + "' exist, and the program in PATH?";
  return e;
}

Error stolen_child(pid_t pid) {
  return make_error(ErrorKind::state,
                    "the exit status of process " + std::to_string(pid) +
                        " is unknown: this program ignores SIGCHLD, or waited for a child of another component",
                    "leave SIGCHLD at its default, or wait for children by their ids");
}

}  // namespace rille
