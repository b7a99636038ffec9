// Finds and ends processes that are no longer children of this process. A process is identified by its id and its start
// time and signalled through a pidfd, so that another process with a reused id is never signalled. Linux only (/proc).
// Any thread; these calls block.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille {

// Names this boot of the machine: process ids, start times, and bytes that were not synced, are of one boot only.
std::string boot_id();

// The start time of process `pid` in clock ticks since boot; empty if there is no such process or it is a zombie.
std::optional<std::uint64_t> process_start_time(pid_t pid);

struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // as process_start_time returns it
  bool operator==(const ProcessId&) const = default;
};

struct ProcessMatch {
  std::vector<pid_t> roots;       // matches these processes and their descendants
  std::string environment_entry;  // "NAME=value": matches all processes started with this variable; "": no process
  bool roots_too = true;          // false: matches only the descendants of the roots
  // matches these processes, if id and start time still agree, and their descendants
  std::vector<ProcessId> known = {};
};

// Both functions return the matching processes except the calling one.
std::vector<pid_t> find_processes(const ProcessMatch& match);
std::vector<ProcessId> identify_processes(const ProcessMatch& match);

// The list as text, to store in a file and find the processes after a crash. decode_processes drops damaged lines, and
// all processes of an earlier boot.
std::string encode_processes(const std::vector<ProcessId>& processes);
std::vector<ProcessId> decode_processes(std::string_view text);

// Sends SIGKILL to matching processes until none is left, even if they fork. Error `state`: some are left after
// limit_ms; the message names them.
Result<> kill_processes(const ProcessMatch& match, std::int64_t limit_ms);

// Sends `signal` to the process with this id and start time and waits at most grace_ms. True: the process is gone.
bool end_process(pid_t pid, std::uint64_t start_time, int signal, std::int64_t grace_ms);

}  // namespace rille
