// SimAgents: the agents on the machines of a simulated cloud. A call does not execute: it takes virtual time and then
// has a result. Both are declared beside the call, sim = { duration = "3h", result = .., checkpoint_every = "10m" }, or
// learned from earlier runs. As with a real agent, a call continues while the runner is dead and ends with its machine.
// On the lease's next machine, or on a machine to which a kept checkpoint was staged, the call continues from its last
// checkpoint. Files are not moved, but a transfer takes time according to the size. A kept checkpoint is a folder with
// one small file. The SimAgents object outlives runs and loops, as the simulated cloud does. Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "runtime/core/store/sqlite.hpp"
#include "runtime/workflow/agent/client.hpp"
#include "runtime/workflow/provider/sim/cloud.hpp"

namespace rille::engine {

// What earlier runs recorded about an operation.
struct Learned {
  std::int64_t duration_ms = 0;  // median duration of the earlier runs
  Value result;                  // the result of the newest earlier run
};

// What was learned, by kind and name of the operation, such as "call train". The kinds are call, exec, stage and get;
// for stage and get, the result is the size.
using Lessons = std::map<std::string, Learned>;
// Learns from the records of the script's runs.
Result<Lessons> learn(store::Db& journal, const std::string& script);

class SimAgents {
 public:
  explicit SimAgents(provider::sim::Cloud& cloud) : cloud_(cloud) {}

  void learn(std::shared_ptr<const Lessons> lessons) { lessons_ = std::move(lessons); }
  // If `yes`, a call of unknown duration takes no time and returns nil, instead of failing; used to estimate costs.
  void end_unknown_calls(bool yes) { unknown_end_ = yes; }
  // The calls whose result was unknown, and so nil: "call 'train'".
  const std::set<std::string>& unknown_calls() const { return unknown_calls_; }
  // Sets the folder of the runs' files. Only there may an agent create folders, for copies of checkpoints.
  void set_home(std::string home) { home_ = std::move(home); }
  // Called before and after each request ("connect", "start", ..); returns whether the requesting process is still
  // alive. If false, the request never returns.
  using Gate = std::function<bool(const char* request, bool done)>;
  void set_gate(Gate gate) { gate_ = std::move(gate); }
  // Simulates a fault: machines start, but no agent answers.
  void never_answer() { silent_ = true; }
  void declare_size(const std::string& path, std::int64_t bytes) { sizes_[path] = bytes; }

  // Connects to a machine's agent once the machine is live. Fails with `network` if the machine is gone.
  Async<std::unique_ptr<agent::AgentClient>> connect(Loop& loop, std::string machine_id, CancelToken token);

  // The time that calls worked in vain, because their machines were lost and the work was repeated.
  std::int64_t lost_work_ms() const;

 private:
  friend class SimAgent;
  struct Call {
    std::string machine, name;
    std::int64_t generation = 0, epoch = 0, started_us = 0;
    std::int64_t begun_with_us = 0;  // work that this call did earlier on other machines
    std::int64_t work_us = 0, checkpoint_us = 0, timeout_us = 0;
    std::int64_t told_us = 0;     // work at the last reported checkpoint
    std::int64_t noticed_us = 0;  // work at the checkpoint that was made after a preemption notice
    std::int64_t left_us = 0;     // when the call left for another machine; 0: it did not leave
    Value result;
    std::int64_t end_us() const { return started_us + work_us - begun_with_us; }
  };
  Async<> place(Loop& loop, const char* request, bool done);
  Result<Call> plan(const agent::StartRequest& request);
  Result<std::int64_t> size_of(const std::string& local, const std::string& remote) const;
  const Learned* lesson(const std::string& kind, const std::string& name) const;

  provider::sim::Cloud& cloud_;
  std::shared_ptr<const Lessons> lessons_ = std::make_shared<Lessons>();
  bool unknown_end_ = false, silent_ = false;
  std::set<std::string> unknown_calls_;
  Gate gate_;
  std::map<std::string, Call> calls_;  // call key -> the call, on the newest machine that it ran on
  mutable std::map<std::string, std::int64_t> sizes_;
  std::map<std::string, std::map<std::string, std::int64_t>>
      restored_;  // machine id -> call name -> work in the checkpoint that was staged onto the machine
  std::string home_;
  std::int64_t done_us_ = 0, useful_us_ = 0;  // work of calls removed from calls_

  bool stopped(const Call& call) const;
  std::int64_t work_until_end_us(const Call& call) const;
  void drop(const Call& call);
};

}  // namespace rille::engine
