// AgentClient: the runner's end of a channel to one instance's agent. The agent owns the calls: a client may vanish and
// another attach, and nothing that runs there notices.
// - A broken channel (the command ended, the peer was silent too long, a malformed frame) fails everything pending with
//   `network`, retryable; the client is then broken() for good: connect again. "Cannot reach" is not "failed".
// - Cancelling an operation stops waiting for it, here; it does not cancel the call (that is cancel()).
// - Errors that the agent gives arrive as they were made there.
// Loop thread only. Destroying the client ends the channel's command, not the agent.
// The agents of a simulated cloud are derived from it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::agent {

struct Heartbeat {
  std::int64_t every_ms = 5'000;
  std::int64_t silence_ms = 30'000;  // by the loop's clock
};

struct ClientOptions {
  // The words before `connect --dir D`, as the instance knows them: {"/usr/bin/rille", "agent"}.
  std::vector<std::string> agent_argv;
  std::string build;  // ours; shown to the agent
  Heartbeat heartbeat;
  // Variables of ours that an agent on this machine, and so all that it starts, does not get.
  std::vector<std::string> withheld;
};

struct AgentInfo {
  std::string build, instance;
  std::string process;  // random, new with each agent process
  std::int64_t pid = 0, started_wall_us = 0;
};

enum class CallState { absent, running, done };

struct CallStatus {
  CallState state = CallState::absent;
  std::optional<Result<Value>> result;  // when done
  Value progress, checkpoint;           // the last ones, or null; of an absent call too, when its agent died
  std::int64_t log_size_bytes = 0;
  // How often it was started, and how many of the last of these starts brought no checkpoint with a higher `step`.
  int attempt = 0, idle_attempts = 0;
};

struct StartRequest {
  std::string call_key;
  std::int64_t generation = 1;  // of the lease's machine
  std::int64_t epoch = 0;       // the run's fencing epoch
  // {kind = "exec", argv = {..}, env = {..}} runs a program: the result is {code, signal}.
  // Any other kind is for the worker program, as it is. Of every kind: `timeout_ms` ends an attempt that takes longer,
  // with `timeout`, whoever is connected. `secrets`: names of variables of ours whose values go along and are written
  // nowhere, neither here nor there; of kinds other than exec they stand in `payload`.
  Value spec;
  // Not 0: a call that is done is started anew if this was its last attempt; log and checkpoint stay.
  int after_attempt = 0;
};

// Told while attached, on the loop thread. All optional.
struct AttachHandlers {
  std::function<void(std::string_view bytes, std::int64_t offset)> log;  // as written; offset of its first byte
  std::function<void(const Value&)> progress, checkpoint;
  std::function<void(std::int64_t deadline_wall_us)> notice;  // the machine will be taken away then
};

struct FileInfo {
  std::string path;  // relative to the instance's work directory; for list: to the listed one
  bool directory = false;
  std::int64_t size_bytes = 0, modified_wall_us = 0;
  int mode = 0644;
  std::string sha256;  // of files, when asked for
};

struct Transfer {
  std::int64_t files = 0, size_bytes = 0, moved_bytes = 0;  // moved is less than size after a resume
};
using TransferProgress = std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)>;

class AgentClient {
 public:
  // Runs `prefix.. agent_argv.. connect --dir D`, which starts an agent there if none is alive. network: with the last
  // words of the command; config: the peer speaks another protocol.
  static Async<std::unique_ptr<AgentClient>> connect(Loop& loop, ChannelSpec channel, ClientOptions options,
                                                     CancelToken token = {});
  virtual ~AgentClient();
  AgentClient(const AgentClient&) = delete;
  AgentClient& operator=(const AgentClient&) = delete;

  const AgentInfo& info() const;
  virtual bool broken() const;
  Async<> wait_broken(CancelToken token = {});  // ends with the error that broke it

  // Idempotent: a call that runs or is done is left as it is. state: an older epoch or generation than one seen there.
  virtual Async<CallStatus> start(StartRequest request, CancelToken token = {});
  // Replays the log from `log_offset`, then streams until the call ends: gives done or absent, never running.
  virtual Async<CallStatus> attach(std::string call_key, std::int64_t log_offset, AttachHandlers handlers,
                                   CancelToken token = {});
  Async<CallStatus> status(std::string call_key, CancelToken token = {});  // as attach, without waiting
  Async<> acknowledge(std::string call_key, CancelToken token = {});       // forgets a call that is done
  // Nobody wants these any more: those that run are cancelled, and all are forgotten. Unknown ones are no error.
  virtual Async<> forget(std::vector<std::string> call_keys, std::string reason, CancelToken token = {});
  // The machine will be taken away at that time: the call is told, and saves what it can. `leave`: it should then end
  // with the error `preempted`, since another machine goes on with it. Success when it is not running.
  virtual Async<> preempt(std::string call_key, std::int64_t deadline_wall_us, bool leave, CancelToken token = {});
  // Asks the call to end, and ends it after the grace; attach then gives `cancelled`. Success when it is not running.
  Async<> cancel(std::string call_key, std::string reason, std::int64_t grace_ms = 10'000, CancelToken token = {});

  // Files and whole directories between here and the instance's work directory; remote paths are relative. What is
  // there already, by size and SHA-256, is not moved again; a part that was moved is resumed. integrity: the digest
  // differs at the end (the part is removed).
  virtual Async<Transfer> put(std::string local_path, std::string remote_path, TransferProgress progress = {},
                              CancelToken token = {});
  virtual Async<Transfer> get(std::string remote_path, std::string local_path, TransferProgress progress = {},
                              CancelToken token = {});
  Async<FileInfo> stat(std::string remote_path, bool digest, CancelToken token = {});
  Async<std::vector<FileInfo>> list(std::string remote_path, CancelToken token = {});  // recursive, sorted

  // {uptime_s, calls = {{key, state}..}, load, cores, memory_free_bytes, disk_free_bytes, usage (usage.hpp), ..}
  virtual Async<Value> describe(CancelToken token = {});
  Async<> shutdown(CancelToken token = {});  // ends the agent and everything beneath it; the directory stays

 protected:
  AgentClient() = default;  // without a channel

 private:
  struct State;
  explicit AgentClient(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace rille::agent
