// `rille agent keeper`: see daemon.hpp.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "runtime/core/loop/process_tree.hpp"
#include "runtime/core/loop/subprocess.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/core/store/instance_dir.hpp"
#include "runtime/workflow/agent/container.hpp"
#include "runtime/workflow/agent/daemon.hpp"
#include "runtime/workflow/agent/starter.hpp"

namespace rille::agent {

namespace {

// Whether another process holds a lock on the file.
Result<bool> is_locked(const std::string& path) {
  store::Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid()) return errno == ENOENT ? Result<bool>(false) : Result<bool>(errno_error("open", path, errno));
  return flock(file.get(), LOCK_EX | LOCK_NB) < 0;
}

class Keeper {
 public:
  explicit Keeper(KeeperOptions options)
      : options_(std::move(options)), path_(options_.directory + "/" + store::agent_tree_name) {}

  // Locks D/agent.tree and kills what an earlier agent left. Returns false if an agent lives in this directory, or if
  // another keeper is still cleaning up.
  Result<bool> take() {
    file_ = store::Fd(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file_.valid()) return errno_error("open", path_, errno);
    if (flock(file_.get(), LOCK_EX | LOCK_NB) < 0) {
      if (errno == EWOULDBLOCK) return false;
      return errno_error("lock", path_, errno);
    }
    RILLE_TRY(bool agent_lives, is_locked(options_.directory + "/" + store::agent_lock_name));
    if (agent_lives) return false;  // an agent lives whose keeper was killed
    RILLE_TRY(std::string before, store::read_file(path_, 16 << 20));
    ProcessMatch left{{}, std::string(instance_environment) + "=" + options_.directory, true, decode_processes(before)};
    RILLE_CHECK(kill_processes(left, 10'000));
    RILLE_CHECK(end_containers(options_.directory));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    note();
    return true;
  }

  Async<int> keep(Loop& loop) {
    SubprocessOptions start;
    start.argv = options_.daemon_argv;
    start.argv.insert(start.argv.end(), {"--dir", options_.directory});
    start.directory = "/";
    start.detached = true;
    start.out = start.err = SubprocessOptions::Output::inherit;
    RILLE_CO_TRY(auto agent, Subprocess::start(loop, start));
    close_starter();  // close this process's standard output: only the agent reports to the starter
    Subprocess& child = *agent;
    auto wait = [&child](CancelToken token) { return child.wait(token); };
    Result<ExitStatus> ended = co_await with_deadline(loop, options_.tick_ms, {}, "the agent's end", wait);
    while (!ended) {
      note();
      ended = co_await with_deadline(loop, options_.tick_ms, {}, "the agent's end", wait);
    }
    RILLE_CO_CHECK(kill_processes({{getpid()}, {}, false}, 60'000));
    RILLE_CO_CHECK(end_containers(options_.directory));
    note();
    co_return ended->signal ? 128 + ended->signal : ended->code;
  }

 private:
  // Writes the list of processes to D/agent.tree. The file is overwritten in place, because a new file could keep the
  // agent from removing the directory.
  void note() {
    std::vector<ProcessId> seen{{getpid(), process_start_time(getpid()).value_or(0)}};
    for (const ProcessId& p : identify_processes({{getpid()}, {}, false})) seen.push_back(p);
    if (seen == noted_) return;
    std::string text = encode_processes(seen);
    if (pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return;
    if (ftruncate(file_.get(), static_cast<off_t>(text.size())) == 0) noted_ = std::move(seen);
  }

  KeeperOptions options_;
  std::string path_;
  store::Fd file_;
  std::vector<ProcessId> noted_;
};

}  // namespace

Async<int> run_keeper(Loop& loop, KeeperOptions options) {
  char* real = realpath(options.directory.c_str(), nullptr);
  if (!real) co_return errno_error("open instance directory", options.directory, errno);
  options.directory = real;
  free(real);
  Keeper keeper(std::move(options));
  auto taken = keeper.take();
  if (!taken) {
    tell_starter(Value().set("error", error_to_value(taken.error())).to_json());
    co_return std::move(taken).error();
  }
  if (!*taken) {
    tell_starter("taken");
    co_return 0;
  }
  co_return co_await keeper.keep(loop);
}

}  // namespace rille::agent
