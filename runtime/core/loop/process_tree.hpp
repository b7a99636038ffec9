// Finding and ending processes that are nobody's child any more. A process is known by its id together with its start
// time, and is signalled through a pidfd, so that a reused id is never hit. Linux (/proc). Any thread; these calls
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

// In clock ticks since boot; nothing when there is no such process or it is a zombie.
std::optional<std::uint64_t> process_start_time(pid_t pid);

struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // as process_start_time gives it
  bool operator==(const ProcessId&) const = default;
};

struct ProcessMatch {
  std::vector<pid_t> roots;           // these and all beneath them
  std::string environment_entry;      // "NAME=value": all that were started with it; "" for none
  bool roots_too = true;              // false: only what is beneath the roots
  std::vector<ProcessId> known = {};  // these, as long as they are the same processes, and all beneath them
};

// Never the calling process.
std::vector<pid_t> find_processes(const ProcessMatch& match);
std::vector<ProcessId> identify_processes(const ProcessMatch& match);

// A list to keep in a file, for the one who comes after a crash. What another boot of the machine wrote, or what is
// damaged, reads as less or nothing.
std::string encode_processes(const std::vector<ProcessId>& processes);
std::vector<ProcessId> decode_processes(std::string_view text);

// SIGKILLs what matches until nothing does, however fast it forks. state: some are left after limit_ms (named).
Result<> kill_processes(const ProcessMatch& match, std::int64_t limit_ms);

// Asks one process (pid and start time) to end, waits at most grace_ms. True when it is gone.
bool end_process(pid_t pid, std::uint64_t start_time, int signal, std::int64_t grace_ms);

}  // namespace rille
