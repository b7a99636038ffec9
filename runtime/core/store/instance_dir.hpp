// An instance's directory, shared by the local provider and the agent. machine.json is written first and removed last,
// so that a partly created or removed instance is recognized. Any thread; these calls block.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/base/channel_spec.hpp"

namespace rille::store {

// The content of machine.json; empty when there is none.
Result<std::optional<Value>> read_machine(const std::string& directory);
Result<> write_machine(const std::string& directory, const Value& machine);

// The content of the lock file that an agent holds while it lives.
struct AgentOwner {
  std::int64_t pid = 0;
  std::uint64_t start_time = 0;
};
inline constexpr const char* agent_lock_name = "agent.lock";
// The keeper's lock file: lists the keeper, then all its descendants (loop/process_tree.hpp).
inline constexpr const char* agent_tree_name = "agent.tree";
std::optional<AgentOwner> read_agent_owner(const std::string& directory);

// The wall time at which the machine will be preempted; empty when there is no readable notice.
inline constexpr const char* notice_name = "notice.json";
std::optional<std::int64_t> read_notice(const std::string& directory);
Result<> write_notice(const std::string& directory, std::int64_t deadline_wall_us);

// Marks the machine as terminating: no agent starts there from now on. Success when there is no machine.
Result<> mark_terminating(const std::string& directory);
// Removes everything, machine.json last. All processes of the instance must have ended.
Result<> remove_instance_directory(const std::string& directory);

}  // namespace rille::store
