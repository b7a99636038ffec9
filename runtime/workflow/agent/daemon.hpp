// The agent of an instance: one process per instance directory D, which owns the calls there and outlives every
// channel.
//
//   D/machine.json       the machine's data (base/channel_spec.hpp) and, for a spot machine, its source of preemption
//                        notices (base/notice_spec.hpp); without the file there is no dead man's switch
//   D/agent.lock         flock'ed while an agent lives; contains {pid, start_time} of the latest agent
//   D/agent.tree         flock'ed while a keeper lives; the latest list of the keeper's processes (process_tree.hpp)
//   D/agent.sock, .log   the agent's socket (0600), and the agent's standard error
//   D/agent.host         exists if another process starts agents here; D/agent.request asks that process for one
//                        (connect.cpp)
//   D/fence.json         the highest epoch and generation seen
//   D/notice.json        when the machine will be taken away, if known (notice.hpp)
//   D/containers/NAME    a call's running container and its engine (container.hpp)
//   D/calls/ID/          spec.json, log, metrics, events.json (latest progress and checkpoint), result.json of a call;
//   ID is
//                        derived from the call's key
//   D/pulls/             what `pull` fetched into D/work, and when it changed (pull.hpp)
//   D/work/              the workers' working directory, with the staged files
//
// A result is on disk before it is announced, and stays until it is acknowledged. If a killed agent left a call with a
// spec but no result, the call counts as absent: its worker died with the agent (PDEATHSIG), and the call's work
// directory is kept. Each worker has its own session. When a call is cancelled or its worker dies, all remaining
// processes of the call are killed. After a clean end, background processes may stay; they end with the instance.
// The agent is a child subreaper, so that no descendant escapes it. It ends on SIGTERM, on `shutdown`, and when the
// machine's time is up, which also removes D. The agent's parent is the keeper, also a subreaper: when the agent is
// killed, the keeper kills all remaining descendants, even those that changed their environment or session.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/base/log.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/core/net/http.hpp"
#include "runtime/workflow/agent/client.hpp"

namespace rille::agent {

struct DaemonOptions {
  std::string directory;
  // The command before `--dir D --call KEY`: {"/usr/bin/rille", "agent", "worker"}.
  std::vector<std::string> worker_argv;
  std::string build;
  std::int64_t log_bytes_max = 64 << 20;  // largest log of one call
  std::int64_t tick_ms = 1000;            // interval of the dead man's switch and of the check for notices
  Heartbeat heartbeat;
  net::Retry pull_retry = {.attempts = 8};  // of a GET without an answer: some 16 s on average
};

// Runs the agent; the process must do nothing else. Blocks SIGTERM, SIGINT, SIGHUP and SIGCHLD, becomes a subreaper,
// takes the lock. Prints "ready\n" on standard output once the agent listens, or "taken\n" if another agent has the
// lock, then closes standard output. Returns the exit code when the agent has ended.
Async<int> run_daemon(Loop& loop, DaemonOptions options);

struct KeeperOptions {
  std::string directory;
  std::vector<std::string> daemon_argv;  // the command before `--dir D`: {"/usr/bin/rille", "agent", "daemon"}
  std::int64_t tick_ms = 1000;           // interval of writing D/agent.tree
};

// Runs the keeper; the process must do nothing else. Kills the processes that an earlier agent left, then runs the
// daemon as a child, which prints "ready", "taken" or an error to the shared standard output. When the daemon has
// ended, for any reason, kills all remaining descendants. If the keeper is killed, the agent runs on. Returns the
// daemon's exit code (128 + the number of a signal that ended it).
Async<int> run_keeper(Loop& loop, KeeperOptions options);

struct ConnectOptions {
  std::string directory;
  std::vector<std::string> keeper_argv;  // the command before `--dir D`: {"/usr/bin/rille", "agent", "keeper"}
};

// Starts an agent for the directory unless one is alive, then copies bytes between standard input/output and the
// agent's socket until one side ends. If the agent cannot be reached, writes an error frame to standard output.
Async<int> run_connect(Loop& loop, ConnectOptions options);

}  // namespace rille::agent
