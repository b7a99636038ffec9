// An instance's directory, as the local provider and the agent both know it: machine.json is written first and removed
// last, so that a half-made or half-removed instance is never mistaken for a whole one. Any thread; these calls block.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/base/channel_spec.hpp"

namespace rille::store {

// machine.json as it stands; nothing when there is none.
Result<std::optional<Value>> read_machine(const std::string& directory);
Result<> write_machine(const std::string& directory, const Value& machine);

// The lock that an agent holds while it lives, and what it wrote there.
struct AgentOwner {
  std::int64_t pid = 0;
  std::uint64_t start_time = 0;
};
inline constexpr const char* agent_lock_name = "agent.lock";
// The keeper's lock and list: the keeper itself first, then all that it saw beneath it (loop/process_tree.hpp).
inline constexpr const char* agent_tree_name = "agent.tree";
std::optional<AgentOwner> read_agent_owner(const std::string& directory);

// The notice that the machine will be taken away, and when; in wall time. Nothing when there is none, or none to read.
inline constexpr const char* notice_name = "notice.json";
std::optional<std::int64_t> read_notice(const std::string& directory);
Result<> write_notice(const std::string& directory, std::int64_t deadline_wall_us);

// Marks the machine as terminating: no agent starts there from now on. Success when there is no machine.
Result<> mark_terminating(const std::string& directory);
// Removes everything, machine.json last. Nothing of the instance may run any more.
Result<> remove_instance_directory(const std::string& directory);

}  // namespace rille::store
