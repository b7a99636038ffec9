// Finds and ends processes that are no longer our children. A process is identified by its id and its start time, and
// signalled through a pidfd, so that a reused id is never hit. Linux (/proc). Any thread; these calls
// block.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille {

// Clock ticks since boot; empty when there is no such process or it is a zombie.
std::optional<std::uint64_t> process_start_time(pid_t pid);

struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // from process_start_time
  bool operator==(const ProcessId&) const = default;
};

struct ProcessMatch {
  std::vector<pid_t> roots;           // these processes and their descendants
  std::string environment_entry;      // "NAME=value": all processes started with it; "": none
  bool roots_too = true;              // false: only the descendants
  std::vector<ProcessId> known = {};  // these, while id and start time still match, and their descendants
};

// Excludes the calling process.
std::vector<pid_t> find_processes(const ProcessMatch& match);
std::vector<ProcessId> identify_processes(const ProcessMatch& match);

// A list to store in a file, for recovery after a crash. decode_processes drops entries of another boot and
// damaged lines.
std::string encode_processes(const std::vector<ProcessId>& processes);
std::vector<ProcessId> decode_processes(std::string_view text);

// SIGKILLs all matching processes until none is left, even if they fork. state: some are left after limit_ms (named).
Result<> kill_processes(const ProcessMatch& match, std::int64_t limit_ms);

// Signals one process (pid and start time) and waits at most grace_ms. True when it is gone.
bool end_process(pid_t pid, std::uint64_t start_time, int signal, std::int64_t grace_ms);

}  // namespace rille
