#include "runtime/workflow/agent/call.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/core/base/places.hpp"
#include "runtime/core/loop/process_tree.hpp"
#include "runtime/workflow/agent/metric.hpp"
#include "runtime/workflow/agent/paths.hpp"

namespace rille::agent {

namespace {
constexpr std::int64_t leave_after_result_ms = 10'000;  // how long a worker may take to exit after its result
constexpr std::int64_t remove_container_ms = 30'000;
constexpr const char* call_environment = "RILLE_CALL";

// The number of OOM kills on the whole machine; in /proc/vmstat since Linux 4.13.
std::int64_t oom_kills() {
  auto text = store::read_file("/proc/vmstat", 1 << 20);
  if (!text) return 0;
  std::size_t at = text->find("\noom_kill ");
  return at == std::string::npos ? 0 : std::strtoll(text->c_str() + at + 10, nullptr, 10);
}

Result<std::vector<std::string>> words(const Value& list, const char* field) {
  const Value::Array* array = list.as_array();
  std::vector<std::string> out;
  for (std::size_t i = 0; array && i < array->size(); ++i)
    if (const std::string* word = (*array)[i].as_string()) out.push_back(*word);
  if (!array || array->empty() || out.size() != array->size())
    return make_error(ErrorKind::invalid,
                      fmt::format("exec: {} = {}: expected a list of strings", field, list.to_json()));
  return out;
}
}  // namespace

Value outcome_to_value(const Result<Value>& result) {
  Value out;
  if (result) out.set("value", *result);
  else out.set("error", error_to_value(result.error()));
  return out;
}

Result<Value> outcome_from_value(const Value& outcome) {
  if (outcome["error"].as_object()) return error_from_value(outcome["error"]);
  return outcome["value"];
}

Call::Call(const Site& site, CallRecord record, CallFiles files)
    : site_(site), record_(std::move(record)), files_(std::move(files)) {
  if (files_.has_result()) state_ = CallState::done;
  Value events = files_.events();
  progress_ = events["progress"];
  checkpoint_ = events["checkpoint"];
  grown_attempt_ = static_cast<int>(events.integer("grown_attempt"));
  if (record_.attempt > 0) files_.open_log().ok();  // if it cannot be opened, the log is empty
}

std::string Call::marker() const { return std::string(call_environment) + "=" + files_.directory(); }

void Call::bump() {
  ++version_;
  for (auto& waiter : std::exchange(waiters_, {})) waiter.set(success());
}

Async<> Call::changed(std::uint64_t seen, CancelToken token) {
  if (token.cancelled()) co_return token.reason();
  if (version_ != seen) co_return success();
  Future<Result<>> done(site_.loop);
  waiters_.push_back(done);
  auto registration = token.on_cancel([done](const Error& why) { done.set(why); });
  co_return co_await done;
}

Result<WorkerStart> Call::plan(const Value& secrets) {
  WorkerStart out;
  const std::string& home = site_.options.directory;
  out.directory = home + "/work";
  if (is_exec()) {
    RILLE_TRY(out.argv, words(record_.spec["argv"], "argv"));
    if (const Value::Object* env = record_.spec["env"].as_object())
      for (const auto& [name, value] : *env) {
        if (!value.as_string() || name.find('=') != std::string::npos)
          return make_error(ErrorKind::invalid,
                            fmt::format("exec: env {} = {}: expected a string", name, value.to_json()));
        out.env.emplace_back(name, *value.as_string());
      }
    if (std::string sub = record_.spec.text("directory"); !sub.empty()) {
      RILLE_TRY(out.directory, inside(out.directory, sub));
      struct stat st {};
      if (stat(out.directory.c_str(), &st) != 0 || !S_ISDIR(st.st_mode))
        return make_error(ErrorKind::io, fmt::format("exec: there is no folder '{}' on the instance", sub),
                          "bring it with box:stage; its name is relative to the instance's work folder");
    }
    if (const std::string* text = record_.spec["stdin"].as_string()) { RILLE_TRY(out.input, files_.save_input(*text)); }
  } else {
    out.argv = site_.options.worker_argv;
    for (const std::string& word : {std::string("--dir"), home, std::string("--call"), record_.key})
      out.argv.push_back(word);
    out.line = true;
    // OpenMP threads that wait spin only briefly: so that they free the cores while a batch is read.
    out.env.emplace_back("GOMP_SPINCOUNT", "2000");
  }
  if (const Value::Object* values = secrets.as_object())
    for (const auto& [name, value] : *values)
      if (value.as_string()) out.env.emplace_back(name, *value.as_string());
  // A call may restrict the GPUs further in its own `env`.
  const auto& gpus = site_.gpus.visible();
  const auto names = [](const auto& variable) { return variable.first == "CUDA_VISIBLE_DEVICES"; };
  if (gpus && std::none_of(out.env.begin(), out.env.end(), names)) out.env.emplace_back("CUDA_VISIBLE_DEVICES", *gpus);
  out.env.emplace_back(instance_environment, home);
  out.env.emplace_back(call_environment, files_.directory());
  if (!image().empty()) RILLE_CHECK(contain(out));
  return out;
}

std::string Call::image() const { return (is_exec() ? record_.spec : record_.spec["payload"]).text("container"); }

// Builds the worker's command in a container. The container's processes carry the environment mark too, so they are
// found and killed where they are visible.
Result<> Call::contain(WorkerStart& start) {
  RILLE_TRY(ContainerEngine engine, find_container_engine());
  ContainerStart inside;
  inside.name = "rille-" + call_id(record_.key).substr(0, 16) + "-" + std::to_string(record_.attempt);
  inside.image = image();
  inside.instance = site_.options.directory;
  inside.directory = start.directory;
  for (const auto& [name, value] : start.env) inside.variables.push_back(name);
  const auto& mine = site_.gpus.visible();
  inside.input = !start.input.empty();
  inside.gpus = container_gpus(mine ? mine->c_str() : std::getenv("CUDA_VISIBLE_DEVICES"));
  inside.argv = std::move(start.argv);
  if (!is_exec()) {  // mounts Rille and the call's folder
    const std::string bundle = bundle_folder();
    inside.readable = {bundle.empty() ? store::parent_path(inside.argv.front()) : bundle, files_.directory()};
    inside.argv.insert(inside.argv.end(), {"--line", "standard"});
    inside.input = start.standard = true;
  }
  RILLE_CHECK(note_container(inside.instance, inside.name, engine));
  container_ = NotedContainer{inside.name, engine.program};
  start.argv = container_command(engine, inside);
  return {};
}

Result<> Call::start(CallRecord record, const Value& secrets) {
  record.attempt = record_.attempt + 1;
  RILLE_CHECK(files_.remove_result());
  RILLE_CHECK(files_.save(record));
  record_ = std::move(record);
  RILLE_CHECK(files_.open_log());
  state_ = CallState::running;
  notice_us_ = 0;
  leave_ = false;
  cancel_reason_.reset();
  beneath_.clear();
  outcome_.reset();
  unsaved_outcome_.reset();
  container_.reset();
  tail_ = OutputTail();
  printed_ = PrintedMetrics();
  oom_kills_ = oom_kills();
  auto planned = plan(secrets);
  auto started = planned ? start_worker(*planned) : Result<StartedWorker>(planned.error());
  if (!started) {
    if (container_) forget_container(site_.options.directory, container_->name);
    finish(outcome_to_value(std::move(started).error()));
    return {};
  }
  pid_ = started->pid;
  if (std::int64_t ms = record_.spec.integer("timeout_ms"); ms > 0)
    limit_ = std::make_unique<Timer>(
        site_.loop, ms, [this, ms] { cancel(timed_out(ms), record_.spec.integer("grace_ms", stop_grace_ms)); });
  stop_output_ = CancelSource();
  output_done_.emplace(site_.loop);
  site_.children.on_exit(pid_,
                         [self = shared_from_this()](ExitStatus exit) { self->site_.loop.spawn(ended(self, exit)); });
  RILLE_TRY(auto output, Stream::adopt(site_.loop, started->output.release()));
  site_.loop.spawn(read_output(shared_from_this(), std::move(output)));
  if (started->line.valid()) {
    RILLE_TRY(auto line, Stream::adopt(site_.loop, started->line.release()));
    line_ = Connection::over(site_.loop, std::move(line));
    line_done_.emplace(site_.loop);
    site_.loop.spawn(read_line(shared_from_this(), line_));
  }
  bump();
  return {};
}

Task<void> Call::read_output(std::shared_ptr<Call> self, std::shared_ptr<Stream> output) {
  std::string block(64 << 10, '\0');
  // After the worker has ended, read the rest of the pipe without waiting: a background process may hold it open.
  for (int rest = 64; rest > 0; rest -= self->stop_output_.cancelled() ? 1 : 0) {
    auto n = co_await output->read(block.data(), block.size(), self->stop_output_.token());
    if (n && *n == 0) break;
    if (!n) {
      if (self->stop_output_.cancelled() && rest == 64) continue;  // the cancel ended the wait: read what is left
      break;
    }
    if (self->is_exec()) self->tail_.add(std::string_view(block.data(), *n));
    // If the disk is full, the log ends here, but the call continues.
    self->files_.append_log(std::string_view(block.data(), *n), self->site_.options.log_bytes_max).ok();
    if (self->is_exec()) self->add_printed(std::string_view(block.data(), *n));
    self->bump();
  }
  self->add_printed("\n");  // the last line may lack its end
  self->output_done_->set(success());
}

Task<void> Call::read_line(std::shared_ptr<Call> self, std::shared_ptr<Connection> line) {
  while (true) {
    auto frame = co_await line->receive();
    if (!frame) break;
    self->hear(*frame);
  }
  line->close(make_error(ErrorKind::state, "the worker process of this call has ended",
                         "the call's own result or error says why"));
  self->line_done_->set(success());
}

void Call::hear(const Frame& frame) {
  std::string event = frame.header.text("event");
  if (event == "progress") {
    progress_ = frame.header["value"];
    ++progress_version_;
  } else if (event == "metrics") {
    add_metrics(frame.body);
  } else if (event == "checkpoint") {
    const Value& next = frame.header["value"];
    if (next.integer("step", -1) > checkpoint_.integer("step", -1)) grown_attempt_ = record_.attempt;
    checkpoint_ = next;
    ++checkpoint_version_;
    files_.save_events(progress_, checkpoint_, grown_attempt_).ok();  // may fail: only a hint for the next attempt
  } else if (event == "result" && !outcome_) {
    outcome_ = frame.header["outcome"];
    store(*outcome_);
    Frame reply;
    reply.type = FrameType::event;
    reply.header.set("event", "stored");
    line_->post(std::move(reply)).ok();
    deadline_ = std::make_unique<Timer>(site_.loop, leave_after_result_ms, [this] { kill_rest(pid_); });
  }
  bump();
}

// Lines that are not metrics would make the runner distrust this agent: they are dropped, since the worker runs a
// user's code. A full disk ends the metrics, but not the call.
void Call::add_metrics(std::string_view lines) {
  if (!check_metric_lines(lines)) return;
  files_.append_metrics(lines).ok();
  bump();
}

void Call::add_printed(std::string_view output) {
  const std::string lines = printed_.add(output, site_.loop.clock().wall_us());
  if (!lines.empty()) add_metrics(lines);
}

void Call::store(Value outcome) {
  if (auto saved = files_.save_result(outcome); !saved) unsaved_outcome_ = std::move(outcome);
}

void Call::finish(Value outcome) {
  if (!outcome_) store(std::move(outcome));
  files_.save_events(progress_, checkpoint_, grown_attempt_).ok();
  state_ = CallState::done;
  bump();
  if (auto fn = std::exchange(when_done_, {})) fn();
}

Error Call::timed_out(std::int64_t limit_ms) const {
  return make_error(ErrorKind::timeout,
                    fmt::format("{} '{}' took longer than its timeout of {}", is_exec() ? "program" : "call",
                                record_.spec.text("name", record_.key), format_duration_ms(limit_ms)),
                    "raise the option timeout, or give the program less to do");
}

void Call::kill_rest(pid_t root) {
  ProcessMatch match{{}, marker(), true};
  if (root > 0) match.roots.push_back(root);
  match.known = beneath_;
  kill_processes(match, 5'000).ok();  // a process that survives this ends with the instance
}

void Call::preempting(std::int64_t deadline_wall_us, bool leave) {
  leave = leave || (leave_ && deadline_wall_us == notice_us_);
  if (state_ != CallState::running || (deadline_wall_us == notice_us_ && leave == leave_)) return;
  notice_us_ = deadline_wall_us;
  leave_ = leave;
  if (line_) {
    Frame frame;
    frame.type = FrameType::event;
    frame.header.set("event", "preempting").set("deadline_wall_us", notice_us_).set("leave", leave_);
    line_->post(std::move(frame)).ok();  // fails only if the worker has ended
  }
  bump();
}

void Call::cancel(Error reason, std::int64_t grace_ms) {
  if (state_ != CallState::running || pid_ == 0 || cancel_reason_) return;
  cancel_reason_ = std::move(reason);
  beneath_ = identify_processes({{pid_}, {}, false});
  if (line_) {
    Frame frame;
    frame.type = FrameType::event;
    frame.header.set("event", "cancel").set("reason", error_to_value(*cancel_reason_));
    line_->post(std::move(frame)).ok();
  } else {
    kill(-pid_, SIGTERM);  // the worker has not been reaped, so its pid cannot belong to another process
  }
  deadline_ = std::make_unique<Timer>(site_.loop, grace_ms, [this] { kill_rest(pid_); });
}

Task<void> Call::ended(std::shared_ptr<Call> self, ExitStatus exit) {
  if (self->container_ && exit.signal == 0 && exit.code > 128 && !self->is_exec())
    exit = {0, exit.code - 128};  // the engine reports a signal as 128 + number
  self->pid_ = 0;
  self->limit_.reset();
  self->deadline_.reset();
  self->stop_output_.cancel(make_error(ErrorKind::state, "the worker process of this call has ended",
                                       "the call's own result or error says why"));
  co_await *self->output_done_;
  if (self->line_) {
    // The worker's last frames are in the socket. A child that keeps the descriptor open must not delay the call.
    Timer limit(self->site_.loop, 1000, [&] {
      self->line_->close(make_error(
          ErrorKind::timeout, "the call's worker process has ended, but did not close its connection to the agent",
          "a process that the call started may still hold it: end such processes in the call"));
    });
    co_await *self->line_done_;
    self->line_.reset();
  }
  self->deadline_.reset();  // the last frames may have contained the result and set this timer again
  bool clean = self->is_exec() ? !self->cancel_reason_ : self->outcome_.has_value();
  if (!clean) self->kill_rest(0);
  if (self->container_) co_await end_container(self, clean && exit.signal == 0);
  self->finish(self->outcome_of(exit));
}

// The command that started the container may have been killed as well. If removal fails, the keeper repeats it.
Task<void> Call::end_container(std::shared_ptr<Call> self, bool by_itself) {
  bool gone = by_itself;  // a container that ended by itself was removed by its engine
  WorkerStart removal;
  removal.argv = removal_command(*self->container_);
  removal.directory = "/";
  auto started = gone ? Result<StartedWorker>(StartedWorker()) : start_worker(removal);
  if (!gone && started) {
    Future<ExitStatus> ended(self->site_.loop);
    self->site_.children.on_exit(started->pid, [ended](ExitStatus exit) { ended.set(exit); });
    Timer limit(self->site_.loop, remove_container_ms, [pid = started->pid] { kill(-pid, SIGKILL); });
    const ExitStatus exit = co_await ended;
    gone = exit.code == 0 && exit.signal == 0;
  }
  if (gone) forget_container(self->site_.options.directory, self->container_->name);
}

Value Call::outcome_of(const ExitStatus& exit) {
  if (outcome_) return *outcome_;
  if (cancel_reason_) {
    Error e = *cancel_reason_;
    return outcome_to_value(std::move(e).with_resource(record_.key));
  }
  if (container_ && exit.code == container_not_started && exit.signal == 0)
    return outcome_to_value(
        make_error(ErrorKind::config, fmt::format("{} could not start the image '{}'", container_->program, image()),
                   "check the image's name and architecture; its last lines:" + files_.last_lines()));
  if (is_exec()) {
    Value value;
    value.set("code", exit.code).set("signal", exit.signal).set("output", tail_.text());
    if (tail_.cut()) value.set("output_cut", true);
    return outcome_to_value(value);
  }
  bool oom = exit.signal == SIGKILL && oom_kills() > oom_kills_;
  Error e = make_error(oom ? ErrorKind::memory : ErrorKind::internal,
                       fmt::format("the worker process of call '{}' ended with {}, without a result{}", record_.key,
                                   exit.text(), oom ? ": the machine was out of memory" : ""));
  std::string last = files_.last_lines();
  e.hint = (oom ? "use less memory or a larger instance; its last lines:" : "find out what ended it; its last lines:") +
           (last.empty() ? " none" : last);
  e.operation = "call";
  e.resource = record_.key;
  e.retryable = exit.signal == SIGKILL && !oom;
  if (e.retryable) e.code = "worker_died";  // the runner restarts such a call from its last checkpoint
  return outcome_to_value(std::move(e));
}

Result<Value> Call::status() const {
  Value out;
  out.set("state", state_ == CallState::done ? "done" : state_ == CallState::running ? "running" : "absent");
  out.set("progress", progress_).set("checkpoint", checkpoint_).set("log_size_bytes", files_.log_size_bytes());
  out.set("attempt", record_.attempt).set("idle_attempts", record_.attempt - grown_attempt_);
  if (state_ == CallState::done) {
    if (unsaved_outcome_) return std::move(out.set("outcome", *unsaved_outcome_));
    RILLE_TRY(Value outcome, files_.result());
    out.set("outcome", std::move(outcome));
  }
  return out;
}

}  // namespace rille::agent
