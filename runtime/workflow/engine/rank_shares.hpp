// Where the machines of a run have the shares of checkpoints that several ranks write together. What a machine tells is
// counted for each machine: one that tells of too many trainings makes the run forget its own older shares alone.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runtime/core/base/value.hpp"
#include "runtime/workflow/agent/client.hpp"

namespace rille::engine {

inline constexpr std::int64_t ranks_max = 256;            // of a communicator
inline constexpr std::size_t shares_of_lease_max = 1000;  // older ones are forgotten

// What the machine of one rank has of a training's checkpoints.
struct RankShares {
  std::weak_ptr<agent::AgentClient> agent;
  std::string folder;  // of the shares; that of a step is below it
  std::string lease;
};

class SharesTold {
 public:
  // `published`: what an event "checkpoint" says. Ignored if it has no share, or one that makes no sense.
  void note(const std::string& lease, const std::shared_ptr<agent::AgentClient>& agent, const Value& published);
  // Null: no machine has told of it. Valid until the next note().
  const RankShares* find(const std::string& training, std::int64_t rank) const;

 private:
  using Place = std::pair<std::string, std::int64_t>;  // training and rank
  std::map<Place, RankShares> shares_;
  std::map<std::string, std::deque<Place>> told_;  // by lease, the oldest first
};

}  // namespace rille::engine
