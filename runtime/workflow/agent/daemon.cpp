#include "runtime/workflow/agent/daemon.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/loop/process_tree.hpp"
#include "runtime/core/store/instance_dir.hpp"
#include "runtime/workflow/agent/call_table.hpp"
#include "runtime/workflow/agent/container.hpp"
#include "runtime/workflow/agent/dead_man.hpp"
#include "runtime/workflow/agent/gpu_hold.hpp"
#include "runtime/workflow/agent/metric.hpp"
#include "runtime/workflow/agent/notice.hpp"
#include "runtime/workflow/agent/pull.hpp"
#include "runtime/workflow/agent/session.hpp"
#include "runtime/workflow/agent/starter.hpp"
#include "runtime/workflow/agent/usage.hpp"

namespace rille::agent {

namespace {

constexpr std::size_t sessions_max = 64;

enum class End { asked, expired, idle };

class Daemon {
 public:
  Daemon(Loop& loop, DaemonOptions options) : loop_(loop), options_(std::move(options)), ended_(loop) {}

  // Takes D/agent.lock. Returns false if another agent holds the lock.
  Result<bool> take_lock() {
    lock_path_ = options_.directory + "/" + store::agent_lock_name;
    lock_ = store::Fd(open(lock_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock_.valid()) return errno_error("open", lock_path_, errno);
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) < 0) {
      if (errno == EWOULDBLOCK) return false;
      return errno_error("lock", lock_path_, errno);
    }
    Value owner;
    owner.set("pid", static_cast<std::int64_t>(getpid())).set("start_time", process_start_time(getpid()).value_or(0));
    std::string text = owner.to_json() + "\n";
    if (ftruncate(lock_.get(), 0) < 0) return errno_error("write", lock_path_, errno);
    RILLE_CHECK(store::write_all(lock_.get(), text, lock_path_));
    return true;
  }

  // Prepares the agent to serve. Called with the lock held, so that no other agent serves this instance.
  Result<> open_up() {
    RILLE_TRY(auto file, store::read_machine(options_.directory));
    if (file) {
      RILLE_TRY(machine_, InstanceFile::from_value(*file));
    } else machine_.orphan_after_ms = 0;  // no machine.json: the agent does not end itself
    if (machine_.terminating)
      return make_error(ErrorKind::state, "instance '" + machine_.id + "' is being terminated", "rent another one");
    RILLE_CHECK(gpus_.take(file ? *file : Value(), options_.directory, loop_.clock().wall_us()));
    dead_man_.emplace(machine_, loop_.clock().wall_us());
    usage_.emplace(loop_);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    RILLE_TRY(children_, Children::watch(loop_, [this](int) { end(End::asked); }));
    RILLE_CHECK(store::make_directories(options_.directory + "/work"));
    Call::Site site{loop_, options_, *children_, gpus_};
    admission_.emplace(options_.directory);
    RILLE_CHECK(admission_->load());
    calls_ = std::make_unique<CallTable>(site);
    RILLE_CHECK(calls_->load());
    notices_.push_back(notice_file(options_.directory));
    auto service = notice_of_metadata(loop_, NoticeSpec::from_value(file ? (*file)["notice"] : Value()));
    if (service) notices_.push_back(std::move(service));
    process_ = random_hex(8);
    started_us_ = loop_.clock().wall_us();
    puller_ = std::make_shared<Puller>(loop_, options_.directory, options_.pull_retry);
    peers_ = std::make_shared<Peers>(loop_);
    host_.emplace(Host{loop_, options_, *calls_, *admission_, puller_, peers_, [this] { return hello(); },
                       [this] { return describe(); }, [this] { end(End::asked); }, [this] { used_ = true; }});
    return listen();
  }

  Async<int> serve() {
    loop_.spawn(accept(*this));
    loop_.spawn(watch(*this));
    End how = co_await ended_;
    stop_.cancel(make_error(ErrorKind::state, "the agent has ended"));
    co_await *accepting_;
    co_await *watching_;
    for (const auto& session : std::set(sessions_)) session->close(farewell(how));
    while (!sessions_.empty()) {
      sessions_changed_.emplace(loop_);
      co_await *sessions_changed_;
    }
    co_await Puller::close(puller_);
    const Result<> processes = children_->end_all(marker());
    const Result<> containers = end_containers(options_.directory);
    listener_.reset();
    if (how == End::asked) {  // a `shutdown` request or signal ended the agent: report a failure in the exit code
      RILLE_CO_CHECK(processes);
      RILLE_CO_CHECK(containers);
      co_return 0;
    }
    // The machine's time is up, and it costs money, so failures are only logged: surviving processes end with the
    // machine. If keeps_files is set, the directory D outlives the machine and is kept for a runner.
    note(processes);
    note(containers);
    if (!machine_.keeps_files) note(remove_all());
    co_return end_machine();
  }

 private:
  std::string marker() const { return std::string(instance_environment) + "=" + options_.directory; }

  // A socket path is limited to 107 bytes; a path through the directory's descriptor is short enough.
  Result<> listen() {
    directory_ = store::Fd(open(options_.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory_.valid()) return errno_error("open", options_.directory, errno);
    RILLE_TRY(listener_,
              Listener::listen_unix(loop_, "/proc/self/fd/" + std::to_string(directory_.get()) + "/agent.sock"));
    return {};
  }

  static Task<void> accept(Daemon& self) {
    self.accepting_.emplace(self.loop_);
    while (!self.stop_.cancelled()) {
      auto stream = co_await self.listener_->accept(self.stop_.token());
      if (!stream || self.stop_.cancelled()) {
        // accept fails if the process has no free file descriptor: wait a second instead of retrying in a busy loop.
        if (!self.stop_.cancelled()) (co_await sleep_for(self.loop_, 1000, self.stop_.token())).ok();
        continue;
      }
      auto session = std::make_shared<Session>(*self.host_, std::move(*stream));
      if (self.sessions_.size() >= sessions_max) {
        session->close(make_error(ErrorKind::state, "the agent has " + std::to_string(sessions_max) +
                                                        " connections already, the limit sessions_max")
                           .with_retry());
        continue;
      }
      self.sessions_.insert(session);
      self.loop_.spawn(serve_one(self, std::move(session)));
    }
    self.accepting_->set(success());
  }

  static Task<void> serve_one(Daemon& self, std::shared_ptr<Session> session) {
    co_await Session::serve(session);
    self.sessions_.erase(session);
    if (self.sessions_changed_) self.sessions_changed_->set(success());
  }

  // Checks at each tick: the dead man's switch, preemption notices, and whether the lock file is still this agent's.
  static Task<void> watch(Daemon& self) {
    self.watching_.emplace(self.loop_);
    while ((co_await sleep_for(self.loop_, self.options_.tick_ms, self.stop_.token())).ok()) {
      DeadMan::Now now;
      now.wall_us = self.loop_.clock().wall_us();
      now.busy = self.calls_->running() > 0 ||
                 std::any_of(self.sessions_.begin(), self.sessions_.end(), [](const auto& s) { return s->admitted(); });
      now.unfetched = self.calls_->unfetched() > 0;
      self.usage_->look(now.wall_us);
      now.used = std::exchange(self.used_, false) || self.calls_->running() > 0 ||
                 self.usage_->utilization().value_or(0) > self.machine_.idle_below;
      self.tell_load(now.wall_us);
      const DeadMan::Verdict verdict = self.dead_man_->look(now);
      if (verdict != DeadMan::Verdict::live) self.end(verdict == DeadMan::Verdict::idle ? End::idle : End::expired);
      for (const auto& source : self.notices_) {
        Result<std::optional<std::int64_t>> notice = co_await source->look(self.stop_.token());
        if (!notice || !*notice) continue;  // this source has no notice or failed: it is asked again at the next tick
        self.calls_->notice(**notice);
        break;  // the first source with a notice decides
      }
      struct stat there {
      }, held{};
      fstat(self.lock_.get(), &held);
      if (stat(self.lock_path_.c_str(), &there) < 0 || there.st_ino != held.st_ino) self.end(End::asked);
    }
    self.watching_->set(success());
  }

  // Adds the machine's load to the metrics of what runs here.
  void tell_load(std::int64_t wall_us) {
    const bool due = wall_us - load_told_us_ >= machine_metrics_every_us || wall_us < load_told_us_;
    if (!due || calls_->running() == 0) return;
    load_told_us_ = wall_us;
    calls_->add_metrics(usage_->metric_lines(wall_us));
  }

  void end(End how) { ended_.set(how); }

  Error farewell(End how) const {
    if (how == End::idle) {
      Error e = make_error(
          ErrorKind::state,
          "the instance was idle for " + format_duration_ms(machine_.idle_after_ms) + " and has removed itself",
          "the option idle_after of rille.rent sets that time");
      e.code = "idle";
      return e;
    }
    if (how == End::expired)
      return make_error(ErrorKind::state, "the instance's ttl has passed, and the instance removed itself",
                        "rent with a longer ttl");
    return make_error(ErrorKind::network, "the agent on the instance was told to stop").with_retry();
  }

  static void note(const Result<>& done) {  // writes a failure to D/agent.log
    if (!done) fprintf(stderr, "%s\n", done.error().summary().c_str());
  }

  // Removes D. First marks the instance as terminating: if the agent is killed before D is gone, no agent starts there.
  Result<> remove_all() {
    RILLE_CHECK(store::mark_terminating(options_.directory));
    return store::remove_instance_directory(options_.directory);
  }

  // Runs the command that ends the machine, if ending the agent does not.
  int end_machine() const {
    if (machine_.end.empty()) return 0;
    std::vector<char*> words;
    for (const std::string& word : machine_.end) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execv(words[0], words.data());
    return 1;
  }

  Value hello() const {
    Value v;
    v.set("instance", machine_.id).set("process", process_).set("pid", static_cast<std::int64_t>(getpid()));
    v.set("started_wall_us", started_us_);
    return v;
  }

  // Tells the client how many GPUs the machine has: those that machine.json assigns, or the number of device files.
  // NVIDIA's driver has one device file per card; AMD's driver and WSL have one file for all cards.
  void tell_gpus(Value& out) const {
    if (gpus_.count()) {
      out.set("gpus", *gpus_.count()).set("gpus_each", true);
      return;
    }
    std::int64_t count = 0;
    bool each = true;
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator("/dev", failed)) {
      const std::string name = entry.path().filename();
      const bool nvidia =
          name.starts_with("nvidia") && name.size() > 6 && name.find_first_not_of("0123456789", 6) == std::string::npos;
      const bool of_all = name == "kfd" || name == "dxg";
      count += nvidia || of_all;
      each = each && !of_all;
    }
    out.set("gpus", count).set("gpus_each", each);
  }

  Result<Value> describe() const {
    Value v = hello();
    v.set("uptime_s", static_cast<double>(loop_.clock().wall_us() - started_us_) / 1e6).set("calls", calls_->list());
    double load[3] = {0, 0, 0};
    if (getloadavg(load, 3) == 3) v.set("load", Value::Array{load[0], load[1], load[2]});
    v.set("cores", static_cast<std::int64_t>(sysconf(_SC_NPROCESSORS_ONLN)));
    v.set("memory_free_bytes", static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE));
    struct statvfs disk {};
    if (statvfs(options_.directory.c_str(), &disk) == 0)
      v.set("disk_free_bytes", static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize));
    v.set("channels", static_cast<std::int64_t>(sessions_.size())).set("expires_wall_us", machine_.expires_wall_us);
    v.set("usage", usage_->to_value());
    tell_gpus(v);
    return v;
  }

  Loop& loop_;
  DaemonOptions options_;
  InstanceFile machine_;
  std::optional<DeadMan> dead_man_;
  std::optional<Usage> usage_;
  std::int64_t load_told_us_ = 0;
  bool used_ = false;  // the machine was used since the last check of the dead man's switch
  std::string lock_path_, process_;
  GpuHold gpus_;
  std::int64_t started_us_ = 0;
  store::Fd lock_, directory_;
  std::unique_ptr<Children> children_;
  std::optional<Admission> admission_;
  std::unique_ptr<CallTable> calls_;
  std::shared_ptr<Puller> puller_;
  std::shared_ptr<Peers> peers_;
  std::vector<std::unique_ptr<NoticeSource>> notices_;
  std::optional<Host> host_;
  std::unique_ptr<Listener> listener_;
  std::set<std::shared_ptr<Session>> sessions_;
  std::optional<Future<Result<>>> sessions_changed_, accepting_, watching_;
  CancelSource stop_;
  Future<End> ended_;
};

}  // namespace

Async<int> run_daemon(Loop& loop, DaemonOptions options) {
  char* real = realpath(options.directory.c_str(), nullptr);
  if (!real) co_return errno_error("open instance directory", options.directory, errno);
  options.directory = real;
  free(real);
  auto daemon = std::make_unique<Daemon>(loop, std::move(options));
  auto taken = daemon->take_lock();
  if (taken && !*taken) {
    tell_starter("taken");
    co_return 0;
  }
  Result<> opened = taken ? daemon->open_up() : Result<>(taken.error());
  if (!opened) {
    Value told;
    told.set("error", error_to_value(opened.error()));
    tell_starter(told.to_json());
    co_return std::move(opened).error();
  }
  tell_starter("ready");
  co_return co_await daemon->serve();
}

}  // namespace rille::agent
