// The agent on an instance: one process per instance directory D that owns the calls there and outlives every channel.
//
//   D/machine.json       what the machine is (base/channel_spec.hpp), and where a spot machine is told of its end:
//                        "notice" (base/notice_spec.hpp); without the file there is no dead man's switch
//   D/agent.lock         flock'ed while an agent lives; {pid, start_time} of the last one
//   D/agent.tree         flock'ed while a keeper lives; the keeper and all beneath it, as last seen (process_tree.hpp)
//   D/agent.sock, .log   its socket (0600) and its standard error
//   D/agent.host         there is somebody who starts agents here; D/agent.request asks for one (connect.cpp)
//   D/fence.json         the highest epoch and generation seen
//   D/notice.json        when the machine will be taken away, if somebody has said so (notice.hpp)
//   D/containers/NAME    a container that runs for a call, and by which engine (container.hpp)
//   D/calls/ID/          spec.json, log, events.json (last progress and checkpoint), result.json; ID comes from the key
//   D/work/              where workers run and files are staged
//
// A result is on the disk before it is announced, and stays until acknowledged. A call with a spec and no result after
// the agent was killed is absent: its worker died with the agent (PDEATHSIG), its work directory stays.
// Workers have sessions of their own. When a call is cancelled or its worker dies, what is left of the call is killed;
// after a clean end its background processes may stay, and end with the instance.
// The agent is a child subreaper, so that nothing beneath it can get away; it ends on SIGTERM, `shutdown`, and when the
// machine's time is up, which removes D as well. Above it stands its keeper, a subreaper, too: when the agent is killed
// it kills what the agent left, also what has neither the environment nor the session it was started with.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/base/log.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/agent/client.hpp"

namespace rille::agent {

struct DaemonOptions {
  std::string directory;
  // The words before `--dir D --call KEY`: {"/usr/bin/rille", "agent", "worker"}.
  std::vector<std::string> worker_argv;
  std::string build;
  std::int64_t log_bytes_max = 64 << 20;  // per call
  std::int64_t tick_ms = 1000;            // how often the dead man looks at the clock, and for a notice
  Heartbeat heartbeat;
};

// Owns the process from here on: blocks SIGTERM, SIGINT, SIGHUP and SIGCHLD, becomes a subreaper, takes the lock.
// Says "ready\n" on standard output once it listens (or "taken\n" when another agent has the lock), then closes it.
// Gives the exit code when the agent has ended.
Async<int> run_daemon(Loop& loop, DaemonOptions options);

struct KeeperOptions {
  std::string directory;
  std::vector<std::string> daemon_argv;  // the words before `--dir D`: {"/usr/bin/rille", "agent", "daemon"}
  std::int64_t tick_ms = 1000;           // how often it writes down what runs beneath it
};

// Owns the process. Ends what an earlier agent left, then runs the daemon, whose "ready", "taken" or error goes to the
// same standard output, and kills all that is left beneath itself when the daemon has ended, however that came. The
// agent goes on when its keeper is killed. Gives the daemon's exit code (128 + signal).
Async<int> run_keeper(Loop& loop, KeeperOptions options);

struct ConnectOptions {
  std::string directory;
  std::vector<std::string> keeper_argv;  // the words before `--dir D`: {"/usr/bin/rille", "agent", "keeper"}
};

// Starts an agent for the directory unless one is alive, then carries bytes between standard input/output and its
// socket until one side ends. A failure to reach it is told to the client as an error frame.
Async<int> run_connect(Loop& loop, ConnectOptions options);

}  // namespace rille::agent
