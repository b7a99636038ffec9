// WorkerChannel: the worker's end of its connection to the agent, the line (a socket at descriptor 3). The agent starts
// one worker per call with the arguments `--dir D --call KEY`, in D/work, with standard output and error as the call's
// log.
// A worker reads its spec, reports progress and checkpoints, gives one result, and ends. If it ends without a result,
// the call fails with the exit status and the last log lines. The kernel kills the worker when the agent dies. Loop
// thread only.
#pragma once

#include <memory>
#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::agent {

class WorkerChannel {
 public:
  // Opens the line at descriptor `fd`. Fails with `state` if no agent is connected there, and with `io` if the call's
  // spec cannot be read.
  static Result<std::unique_ptr<WorkerChannel>> open(Loop& loop, std::string directory, std::string call_key,
                                                     int fd = 3);
  // Opens the line of a worker in a container: standard input and output. From then on, prints go to standard error.
  static Result<std::unique_ptr<WorkerChannel>> open_standard(Loop& loop, std::string directory, std::string call_key);
  ~WorkerChannel();

  const Value& spec() const;  // the call's spec as the runner gave it to start
  const std::string& call_key() const;
  const std::string& directory() const;  // the instance's directory D
  int attempt() const;                   // number of this start of the call, from 1
  Value last_checkpoint() const;         // the latest checkpoint of an earlier attempt, or null

  // These queue an event for the agent and do not wait. Only the newest queued progress is sent, but every checkpoint.
  void progress(Value value);
  void checkpoint(Value value);
  // Queues a line of a metric (metric.hpp). Lines that come faster than the agent takes them are dropped beyond 8 MB.
  void metric(std::string_view line);
  // A token that is cancelled when the runner cancels the call. The worker should then end soon.
  CancelToken cancelled() const;

  // A preemption notice. deadline_wall_us: when the machine will be taken away (0: no notice). leave: the worker should
  // end with the error `preempted` once its checkpoint is safe, because the call continues on another machine.
  struct Preempting {
    std::int64_t deadline_wall_us = 0;
    bool leave = false;
  };
  Preempting preempting() const;

  // Sends the result and waits until the agent has written it to disk. A result over the frame limit (16 MiB) is
  // replaced by an error. Call it once.
  Async<> finish(Result<Value> result);

 private:
  struct State;
  static Result<std::shared_ptr<State>> load(Loop& loop, std::string directory, std::string call_key);
  explicit WorkerChannel(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace rille::agent
