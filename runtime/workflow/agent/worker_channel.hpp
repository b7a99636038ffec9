// WorkerChannel: the worker's end of its line to the agent (a socket at descriptor 3). The agent starts a worker per
// call with the words `--dir D --call KEY`, D/work as its directory and its standard output and error as the call's
// log.
// A worker reads its spec, reports progress and checkpoints, gives one result, and ends. The result must come before
// the process ends; a worker that ends without one makes the call fail with its exit status and last log lines.
// When the agent dies the worker is killed by the kernel.
// Loop thread only.
#pragma once

#include <memory>
#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::agent {

class WorkerChannel {
 public:
  // state: no agent at that descriptor; io: the spec cannot be read.
  static Result<std::unique_ptr<WorkerChannel>> open(Loop& loop, std::string directory, std::string call_key,
                                                     int fd = 3);
  // In a container: the line is the standard input and output, and what is printed from here on is standard error.
  static Result<std::unique_ptr<WorkerChannel>> open_standard(Loop& loop, std::string directory, std::string call_key);
  ~WorkerChannel();

  const Value& spec() const;  // as given to start
  const std::string& call_key() const;
  const std::string& directory() const;  // D
  int attempt() const;                   // 1, and one more each time the call was started again
  Value last_checkpoint() const;         // what an earlier attempt published last, or null

  // Queued and sent as the line allows. Of progress only the newest waits; checkpoints are never left out.
  void progress(Value value);
  void checkpoint(Value value);
  // Cancelled when the runner asks for it. The worker should then end soon, with a result or without.
  CancelToken cancelled() const;

  // The machine will be taken away then, in wall time (0: nobody has said so). leave: once its checkpoint is safe the
  // worker should end with the error `preempted`; the call goes on elsewhere.
  struct Preempting {
    std::int64_t deadline_wall_us = 0;
    bool leave = false;
  };
  Preempting preempting() const;

  // Sends the result and waits until the agent has it on its disk. A result over the frame limit (16 MiB) is
  // replaced by an error that says so. Once.
  Async<> finish(Result<Value> result);

 private:
  struct State;
  static Result<std::shared_ptr<State>> load(Loop& loop, std::string directory, std::string call_key);
  explicit WorkerChannel(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace rille::agent
