// LeaseSession: what this process knows about one lease of the run: the agent connection, the running calls, the change
// of the machine in progress, the preemption notice, and the expiry. Created when the lease is first used, and kept
// until the run ends. Private to runtime/workflow/engine; loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/loop/cancel.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/agent/client.hpp"

namespace rille::engine {

struct LeaseSession {
  // The change of the lease's machine in progress. One fiber at a time makes a change; the other fibers wait in
  // `waiting` until the phase is `steady`.
  enum class Phase : std::uint8_t { steady, moving, resizing, setting_up, ending };
  Phase phase = Phase::steady;
  std::vector<Future<Result<>>> waiting;
  std::int64_t resizes = 0;  // how often the lease's machine was stopped for a resize

  std::shared_ptr<agent::AgentClient> agent;  // null: not connected
  struct Lie {
    std::int64_t generation = 0;
    Error error;
  };
  std::optional<Lie> lie;                       // the last machine whose agent broke the protocol; never connected to
  std::int64_t told_starting_us = 0;            // when the user was last told that the machine is starting
  std::map<std::string, std::string> unwanted;  // results that the agent should drop: call key -> reason
  bool telling = false;                         // a task is sending `unwanted` to the agent

  struct Working {  // a running call
    std::shared_ptr<agent::AgentClient> agent;
    std::int64_t generation = 0;
    // may_leave: the home keeps the call's checkpoints, so the call can continue on another machine. left: the call has
    // stopped to continue on the lease's next machine.
    bool may_leave = false, left = false;
  };
  std::map<std::string, Working> working;
  int users = 0;  // calls and transfers in progress; the ledger counts a started machine with 0 users as idle

  struct Notice {
    std::int64_t generation = 0, deadline_us = 0;
  };
  std::optional<Notice> notice;  // nullopt: not read from the journal yet

  std::int64_t watched = 0;       // generation whose preemption notices are polled; 0: no polling
  std::int64_t gpus_counted = 0;  // last generation whose GPUs were counted
  std::int64_t ended_idle = 0;    // last generation whose agent reported the machine as idle

  struct Term {                              // exists until the lease is released
    std::optional<std::int64_t> expires_us;  // when this process ends the lease; nullopt: never, or being ended now
    // orphan_ms: after this time without contact the machine ends itself. met_us: the last contact with its agent.
    std::int64_t orphan_ms = 0, met_us = 0;
    bool meeting = false;
    CancelSource over;  // cancels the lease's calls
  };
  std::optional<Term> term;
  Term& in_term() { return term ? *term : term.emplace(); }

  bool connected() const { return agent && !agent->broken(); }
};

}  // namespace rille::engine
