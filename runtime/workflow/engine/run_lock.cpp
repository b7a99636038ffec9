#include "runtime/workflow/engine/run_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace rille::engine {

static constexpr std::size_t id_chars_max = 120;

Result<> check_run_id(const std::string& id) {
  bool good = !id.empty() && id.size() <= id_chars_max && id.front() != '.' && id != "last";
  for (char c : id) good = good && (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.');
  if (good) return {};
  return make_error(ErrorKind::invalid, fmt::format("'{}' cannot be the id of a run", id),
                    fmt::format("use up to {} letters, digits, dots and dashes", id_chars_max));
}

// Whether the process with this id has ended. `pid`: the text of the lock file.
static bool process_has_ended(const char* pid) {
  int number = std::atoi(pid);
  return number > 0 && kill(number, 0) != 0 && errno == ESRCH;
}

RunLock::~RunLock() {
  // Unlock explicitly: if this process has forked, its child has the descriptor too, and closing ours keeps the lock.
  if (fd_ >= 0) flock(fd_, LOCK_UN), close(fd_);
  if (held_) held_->erase(run_);
}

Result<RunLock> RunLock::take(std::set<std::string>& held, const std::string& run) {
  RunLock lock;
  if (!held.insert(run).second)
    return make_error(ErrorKind::state, fmt::format("run {} is already being run in this process", run),
                      "wait until it has ended, or use another run id")
        .with_resource(run);
  lock.held_ = &held;
  lock.run_ = run;
  return lock;
}

Result<RunLock> RunLock::take(const std::string& folder, const std::string& run) {
  RILLE_CHECK(check_run_id(run));
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  std::string path = folder + "/lock";
  RunLock lock;
  lock.fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock.fd_ < 0) return errno_error("open", path, errno);
  // Retry, because the lock may be held only for an instant: RunLock::held takes a shared lock, and a child process
  // that a killed runner has just forked holds the lock until its exec.
  char text[32] = {};
  for (int i = 0; i < 4 || (i < 1000 && process_has_ended(text)); ++i) {
    if (flock(lock.fd_, LOCK_EX | LOCK_NB) == 0) {
      std::string pid = std::to_string(getpid());
      (void)!ftruncate(lock.fd_, 0);
      (void)!pwrite(lock.fd_, pid.data(), pid.size(), 0);
      return lock;
    }
    (void)!pread(lock.fd_, text, sizeof text - 1, 0);
    usleep(1000);
  }
  return make_error(ErrorKind::state, fmt::format("run {} is being run by process {}", run, text[0] ? text : "?"),
                    fmt::format("wait for it, follow it with `rille logs {} -f`, or stop that process first", run))
      .with_resource(run);
}

bool RunLock::held(const std::string& folder) {
  int fd = ::open((folder + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  bool held = flock(fd, LOCK_SH | LOCK_NB) != 0;
  close(fd);
  return held;
}

}  // namespace rille::engine
