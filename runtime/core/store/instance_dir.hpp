// An instance's directory, used by the local provider and the agent. machine.json is written first and removed last, so
// that a partly created or partly removed instance is recognized. Any thread; these calls block.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/base/channel_spec.hpp"

namespace rille::store {

// The content of machine.json; empty if the file does not exist.
Result<std::optional<Value>> read_machine(const std::string& directory);
Result<> write_machine(const std::string& directory, const Value& machine);

// The content of agent.lock, a file that the agent keeps locked while it lives.
struct AgentOwner {
  std::int64_t pid = 0;
  std::uint64_t start_time = 0;
};
inline constexpr const char* agent_lock_name = "agent.lock";
// The lock file of the agent's keeper process. It lists the keeper and all the keeper's descendants
// (loop/process_tree.hpp).
inline constexpr const char* agent_tree_name = "agent.tree";
std::optional<AgentOwner> read_agent_owner(const std::string& directory);

// notice.json: the wall-clock time, in microseconds, at which the machine will be preempted; read_notice returns empty
// if there is no readable notice.
inline constexpr const char* notice_name = "notice.json";
std::optional<std::int64_t> read_notice(const std::string& directory);
Result<> write_notice(const std::string& directory, std::int64_t deadline_wall_us);

// Marks the machine as terminating: no agent may start in it from now on. Also succeeds if the machine does not exist.
Result<> mark_terminating(const std::string& directory);
// Removes the whole directory, machine.json last. All processes of the instance must have ended.
Result<> remove_instance_directory(const std::string& directory);

}  // namespace rille::store
