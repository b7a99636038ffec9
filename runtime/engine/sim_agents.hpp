// SimAgents: what works on the machines of a simulated cloud. A call there does not run: it takes virtual time and then
// has a result. Both are declared beside the call, sim = { duration = "3h", result = .., checkpoint_every = "10m" }, or
// learned from earlier runs. As with a real agent the call goes on while the runner is dead, dies with its machine, and
// goes on from its last checkpoint on the next. Files are not moved: their size takes time.
// They outlive runs and loops, as their cloud does. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/agent/client.hpp"
#include "runtime/provider/sim/cloud.hpp"

namespace rille::engine {

// What earlier runs say about an operation.
struct Learned {
  std::int64_t duration_ms = 0;        // the median
  Value result;                        // the last
};

class SimAgents {
 public:
  explicit SimAgents(const provider::sim::Cloud& cloud) : cloud_(cloud) {}

  // kind: call exec stage get. Of stage and get the result tells the size.
  void learn(const std::string& kind, const std::string& name, Learned what) { learned_[kind + " " + name] = what; }
  // Folders may be made beneath this one only: copies of checkpoints, in a run's home.
  void set_home(std::string home) { home_ = std::move(home); }
  void declare_size(const std::string& path, std::int64_t bytes) { sizes_[path] = bytes; }

  // A connection to the agent of a machine, once that is live. network: the machine has gone.
  Async<std::unique_ptr<agent::AgentClient>> connect(Loop& loop, std::string machine_id, CancelToken token);

  // How much of a call's work was done again because a machine was lost with it.
  std::int64_t lost_work_ms() const { return lost_work_us_ / 1000; }

 private:
  friend class SimAgent;
  struct Call {
    std::string machine;
    std::int64_t generation = 0, epoch = 0, started_us = 0;
    std::int64_t begun_with_us = 0;    // of the work, done before on other machines
    std::int64_t work_us = 0, checkpoint_us = 0, timeout_us = 0;
    std::int64_t told_us = 0;          // work at the last checkpoint that was told
    Value result;
    std::int64_t end_us() const { return started_us + work_us - begun_with_us; }
  };
  Result<Call> plan(const agent::StartRequest& request) const;
  Result<std::int64_t> size_of(const std::string& path) const;

  const provider::sim::Cloud& cloud_;
  std::map<std::string, Learned> learned_;
  std::map<std::string, Call> calls_;          // by call key; of the newest machine
  mutable std::map<std::string, std::int64_t> sizes_;
  std::string home_;
  std::int64_t lost_work_us_ = 0;
};

}  // namespace rille::engine
