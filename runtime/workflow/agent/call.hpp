// Call: one call on this instance, inside the agent, from the start of its worker to its result. The log exists only as
// a file: a stream reads the file and waits for changes. Held by shared_ptr: its tasks keep it alive while it runs.
// Loop thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/loop/process_tree.hpp"
#include "runtime/workflow/agent/call_files.hpp"
#include "runtime/workflow/agent/connection.hpp"
#include "runtime/workflow/agent/container.hpp"
#include "runtime/workflow/agent/daemon.hpp"
#include "runtime/workflow/agent/gpu_hold.hpp"
#include "runtime/workflow/agent/output_tail.hpp"
#include "runtime/workflow/agent/printed_metrics.hpp"
#include "runtime/workflow/agent/worker_process.hpp"

namespace rille::agent {

class Call : public std::enable_shared_from_this<Call> {
 public:
  struct Site {  // shared by all calls of an agent; outlives them
    Loop& loop;
    const DaemonOptions& options;
    Children& children;
    const GpuHold& gpus;
  };
  Call(const Site& site, CallRecord record, CallFiles files);

  const CallRecord& record() const { return record_; }
  CallState state() const { return state_; }
  // Writes the record with the next attempt and starts the worker. If the worker cannot be started, the call is done
  // with that error. Fails only if the disk does. `secrets`: variables and their values; never written to a file.
  Result<> start(CallRecord record, const Value& secrets);
  static constexpr std::int64_t stop_grace_ms = 10'000;  // from SIGTERM to SIGKILL
  // The first reason becomes the call's error, unless the worker still gives a result.
  void cancel(Error reason, std::int64_t grace_ms = stop_grace_ms);
  // Tells the worker that the machine will be taken away at that time, again whenever an argument changes. `leave`:
  // another machine takes over, so the worker should end with the error `preempted` once its checkpoint is safe.
  void preempting(std::int64_t deadline_wall_us, bool leave);
  std::int64_t notice_wall_us() const { return notice_us_; }
  // Called once, when the worker has ended and the outcome is final.
  void when_done(std::function<void()> fn) { when_done_ = std::move(fn); }
  // The call's state with its last progress and checkpoint; once it is done, also {value} or {error}.
  Result<Value> status() const;
  // Appends lines of metrics to those of the call.
  void add_metrics(std::string_view lines);
  const CallFiles& files() const { return files_; }
  CallFiles& files() { return files_; }

  // Counts the changes of log, progress, checkpoint and state. changed() waits until version() differs from `seen`.
  std::uint64_t version() const { return version_; }
  Async<> changed(std::uint64_t seen, CancelToken token);
  std::uint64_t progress_version() const { return progress_version_; }
  std::uint64_t checkpoint_version() const { return checkpoint_version_; }
  const Value& progress() const { return progress_; }
  const Value& checkpoint() const { return checkpoint_; }

 private:
  Result<WorkerStart> plan(const Value& secrets);
  Result<> contain(WorkerStart& start);
  std::string image() const;  // the call's container image; "": the call runs without a container
  bool is_exec() const { return record_.spec.text("kind") == "exec"; }
  std::string marker() const;
  void bump();
  void kill_rest(pid_t root);
  void finish(Value outcome);
  void store(Value outcome);
  Value outcome_of(const ExitStatus& exit);
  Error timed_out(std::int64_t limit_ms) const;
  static Task<void> read_output(std::shared_ptr<Call> self, std::shared_ptr<Stream> output);
  static Task<void> read_line(std::shared_ptr<Call> self, std::shared_ptr<Connection> line);
  static Task<void> ended(std::shared_ptr<Call> self, ExitStatus exit);
  static Task<void> end_container(std::shared_ptr<Call> self, bool by_itself);
  void hear(const Frame& frame);
  void add_printed(std::string_view output);

  Site site_;
  CallRecord record_;
  CallFiles files_;
  CallState state_ = CallState::absent;
  Value progress_, checkpoint_;
  std::int64_t notice_us_ = 0;
  bool leave_ = false;
  int grown_attempt_ = 0;  // the attempt in which the checkpoint's step last grew
  std::uint64_t version_ = 0, progress_version_ = 0, checkpoint_version_ = 0;
  std::vector<Future<Result<>>> waiters_;

  // The following members are used while the worker runs.
  pid_t pid_ = 0;
  std::shared_ptr<Stream> output_;
  std::shared_ptr<Connection> line_;
  OutputTail tail_;         // of a program
  PrintedMetrics printed_;  // by a program
  CancelSource stop_output_;
  std::optional<Future<Result<>>> output_done_, line_done_;
  std::unique_ptr<Timer> deadline_;  // kills a worker that was cancelled, or that stays after its result
  std::unique_ptr<Timer> limit_;     // ends the attempt at the call's timeout_ms
  std::optional<Error> cancel_reason_;
  std::function<void()> when_done_;
  std::optional<Value> outcome_;          // the outcome that the worker sent
  std::optional<Value> unsaved_outcome_;  // an outcome that could not be written to disk
  std::vector<ProcessId>
      beneath_;  // processes below the worker when it was cancelled; some may lack our environment mark
  std::optional<NotedContainer> container_;  // the container that the program runs in
  std::int64_t oom_kills_ = 0;
};

// Converts a result to {value = v} or {error = e}, and back.
Value outcome_to_value(const Result<Value>& result);
Result<Value> outcome_from_value(const Value& outcome);

}  // namespace rille::agent
