// LeaseSession: this process's state of one lease of its run: the agent connection, the running calls, the turn of the
// one fiber that changes the machine, the preemption notice, and the expiry. Created when the lease is first used, kept
// while the run runs. Private to runtime/workflow/engine; loop thread only.
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
  // The change in progress. One fiber at a time makes changes; the others wait until the phase is steady.
  enum class Phase : std::uint8_t { steady, moving, resizing, setting_up, ending };
  Phase phase = Phase::steady;
  std::vector<Future<Result<>>> waiting;
  std::int64_t resizes = 0;  // number of times its machine was stopped for a resize

  std::shared_ptr<agent::AgentClient> agent;    // null: not connected
  std::int64_t told_starting_us = 0;            // when the user was last told that it is starting
  std::map<std::string, std::string> unwanted;  // results to drop: call key on the agent -> reason
  bool telling = false;                         // a task is sending `unwanted`

  struct Working {  // a running call, by its key on the agent
    std::shared_ptr<agent::AgentClient> agent;
    std::int64_t generation = 0;
    bool may_leave = false, left = false;  // may_leave: checkpoints are kept here; left: moves on
  };
  std::map<std::string, Working> working;
  int users = 0;  // calls and transfers. In the ledger, a started machine without users is idle

  struct Notice {
    std::int64_t generation = 0, deadline_us = 0;
  };
  std::optional<Notice> notice;  // none: not read yet

  // The last generation for which each was done.
  std::int64_t watched = 0;  // notices are polled; 0: they are not
  std::int64_t gpus_counted = 0;
  std::int64_t ended_idle = 0;  // its agent reported it idle

  struct Term {                              // until the lease is released
    std::optional<std::int64_t> expires_us;  // none: nothing to end, or it is being ended
    std::int64_t orphan_ms = 0, met_us = 0;  // met: last contact with its agent
    bool meeting = false;
    CancelSource over;  // cancels its calls
  };
  std::optional<Term> term;
  Term& in_term() { return term ? *term : term.emplace(); }

  bool connected() const { return agent && !agent->broken(); }
};

}  // namespace rille::engine
