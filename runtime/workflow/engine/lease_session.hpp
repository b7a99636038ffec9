// LeaseSession: what this process knows of one lease that its run uses, and what it does there: the connection to the
// agent, the calls under way, the turn of the one fiber that changes the machine, the notice that it will be taken
// away, and the end of its time. Made when the lease is first used, kept while the run runs. Private to
// runtime/workflow/engine; loop thread only.
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
  // What is done to the lease or its machine. One fiber at a time does it, and the others wait until it is steady.
  enum class Phase : std::uint8_t { steady, moving, resizing, setting_up, ending };
  Phase phase = Phase::steady;
  std::vector<Future<Result<>>> waiting;
  std::int64_t resizes = 0;  // how often its machine has stood still for one

  std::shared_ptr<agent::AgentClient> agent;    // null: not connected
  std::int64_t told_starting_us = 0;            // when its user last heard that it is starting
  std::map<std::string, std::string> unwanted;  // results that the agent need not keep: call key there -> reason
  bool telling = false;                         // a task tells the agent so

  struct Working {  // a call under way, by its key on the agent
    std::shared_ptr<agent::AgentClient> agent;
    std::int64_t generation = 0;
    bool may_leave = false, left = false;  // its checkpoints are kept here; it has ended, to go on elsewhere
  };
  std::map<std::string, Working> working;
  int users = 0;  // calls and transfers. For the ledger: what is neither starting nor in use is idle

  struct Notice {
    std::int64_t generation = 0, deadline_us = 0;
  };
  std::optional<Notice> notice;  // none: not looked for yet

  // The generation of which this was done last.
  std::int64_t watched = 0;  // the provider is asked for notices; 0: it is not
  std::int64_t gpus_counted = 0;
  std::int64_t ended_idle = 0;  // its agent has said that it is idle

  struct Term {                              // until the lease is released
    std::optional<std::int64_t> expires_us;  // none: it need not be ended here, or is being ended
    std::int64_t orphan_ms = 0, met_us = 0;  // met: its agent
    bool meeting = false;
    CancelSource over;  // of what works there
  };
  std::optional<Term> term;
  Term& in_term() { return term ? *term : term.emplace(); }

  bool connected() const { return agent && !agent->broken(); }
};

}  // namespace rille::engine
