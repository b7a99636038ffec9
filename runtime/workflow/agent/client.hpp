// AgentClient: the runner's end of a channel to one instance's agent. The agent owns the calls: they run on when a
// client disconnects and another attaches.
// - A broken channel (its command ended, the peer was silent too long) fails every pending operation with `network`,
//   retryable. The client stays broken(): make a new one. The calls may still run.
// - A malformed frame or a value out of range fails them with `integrity`, code broken_protocol, not retryable, since
//   the peer is damaged or hostile.
// - Cancelling an operation only stops the wait for it; cancel() cancels the call.
// - The agent's errors arrive unchanged.
// Loop thread only. Destroying the client ends the channel's command, not the agent.
// The agents of the simulated cloud derive from it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/base/use.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::agent {

struct Heartbeat {
  std::int64_t every_ms = 5'000;
  std::int64_t silence_ms = 30'000;  // the channel breaks after this silence, by the loop's clock
};

struct ClientOptions {
  // The command before `connect --dir D`, in the instance's paths: {"/usr/bin/rille", "agent"}.
  std::vector<std::string> agent_argv;
  std::string build;  // this program's build id; shown to the agent
  // Proves the runner to the agent (admission.hpp): at least 32 bytes, the same at each connection to the machine.
  // Secret: sent in the hello frame only.
  std::string token;
  std::int64_t generation = 1;  // of the lease's machine
  std::int64_t epoch = 0;       // of the run
  Heartbeat heartbeat;
  // Environment variables that an agent on this machine, and everything that it starts, must not inherit.
  std::vector<std::string> withheld;
};

struct AgentInfo {
  std::string build, instance;
  std::string process;  // a random id of the agent's process
  std::int64_t pid = 0, started_wall_us = 0;
};

enum class CallState { absent, running, done };

struct CallStatus {
  CallState state = CallState::absent;
  std::optional<Result<Value>> result;  // set when the call is done
  Value progress, checkpoint;           // the latest, or null; set also if the call is absent because its agent died
  std::int64_t log_size_bytes = 0;
  // How often the call was started, and how many of the latest starts gave no checkpoint with a higher `step`.
  int attempt = 0, idle_attempts = 0;
};

struct StartRequest {
  std::string call_key;
  std::int64_t generation = 1;  // generation of the lease's machine
  std::int64_t epoch = 0;       // the run's fencing epoch
  // {kind = "exec", argv = {..}, env = {..}} runs a program; the result is {code, signal}. Any other kind is passed to
  // the worker program unchanged. For every kind: `timeout_ms` ends a longer attempt with the error `timeout`, also
  // without a connected runner. `secrets`: names of this process's environment variables; their values are sent with
  // the request and never written to a file. For kinds other than exec, `secrets` is a member of `payload`.
  Value spec;
  // If the call is done and this is the number of its last attempt, the call is started again; its log and checkpoint
  // are kept. 0: a call that is done is not started again.
  int after_attempt = 0;
};

// Callbacks while attached, on the loop thread. All optional.
struct AttachHandlers {
  std::function<void(std::string_view bytes, std::int64_t offset)> log;  // offset: position of `bytes` in the log
  std::function<void(const Value&)> progress, checkpoint;
  std::function<void(std::int64_t deadline_wall_us)> notice;  // when the machine will be taken away
  // Whole lines of the call's metrics (metric.hpp), from metrics_offset on. `offset`: their position among all of them;
  // 0 although more was asked for: the machine has begun the call anew.
  std::function<void(std::string_view lines, std::int64_t offset)> metrics;
  std::int64_t metrics_offset = 0;
};

struct FileInfo {
  std::string path;  // relative to the instance's work directory; in the results of list, to the listed directory
  bool directory = false;
  std::int64_t size_bytes = 0, modified_wall_us = 0;
  int mode = 0644;
  std::string sha256;  // the file's digest, if it was requested
};

struct Transfer {
  std::int64_t files = 0, size_bytes = 0, moved_bytes = 0;  // moved_bytes is less than size_bytes after a resume
};
using TransferProgress = std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)>;

// How an object is passed on between machines of a run (docs/design/agent.md, "Passing on").
struct PullShare {
  std::string id, key;                             // 32 and 64 hexadecimal digits; key: secret
  std::vector<std::vector<std::string>> machines;  // addresses of each machine that may have parts, first those to ask
  std::string digests;                             // of parts, as far as they are known (share.hpp)
  // What another machine has heard of it from the server, for a request that does not say; -1, "": nothing.
  std::int64_t size_bytes = -1;
  std::string version;
};
// What an agent says of the shares of its channel.
struct ShareHandlers {
  std::function<void(std::vector<std::string> addresses)> listening;
  std::function<void(std::string share, std::int64_t part, std::string sha256)> digest;
  std::function<void(std::string share, std::int64_t size_bytes, std::string version)> object;
};

// What the instance fetches by itself: one object at an address that needs no further keys.
struct PullAddress {
  std::string url;  // secret until it expires; never written to a file
  std::vector<std::pair<std::string, std::string>> headers;
  std::int64_t expires_wall_us = 0;  // 0: does not expire
  std::optional<PullShare> share;    // empty: the object is not passed on
};
struct PullRequest {
  std::string path;  // the file to create, relative to the work directory
  // Names the source in the instance's notes and cache, in any run: a hash of its address without secrets.
  std::string key;
  std::int64_t size_bytes = -1;  // -1: the server tells
  std::string version;  // for If-Match, and for x-goog-if-generation-match of gs; "": what the server tells first
  std::string sha256;   // the expected digest; "": not checked
  std::int64_t part_bytes = 16 << 20;
  int parallel = 8;                       // ranges fetched at the same time
  std::int64_t bytes_per_second_max = 0;  // 0: no limit
};
struct Pulled {
  std::int64_t size_bytes = 0, moved_bytes = 0;  // moved_bytes: what this call fetched from the server
  std::string version, sha256;
  std::int64_t shared_bytes = 0;  // that came from other machines
  std::vector<int> liars;         // indices in PullShare::machines: whose bytes had another digest
};
// Makes an address for the request; called at the start, and again when the server refuses or the address expires.
using PullSign = std::function<Async<PullAddress>(CancelToken)>;

// What the instance sends by itself: a range of one of its files, to an address that needs no further keys.
struct PushRequest {
  std::string path;  // relative to the work directory
  std::int64_t offset = 0, size_bytes = 0;
  PullAddress to;
};
struct Pushed {
  std::string mark;  // the ETag that the server answered with; "": none
};

class AgentClient {
 public:
  // Runs `prefix.. agent_argv.. connect --dir D`, which starts an agent on the instance if none is alive. Fails with
  // `network` if no connection is made (the hint has the last lines of the command's standard error), with `config` if
  // the agent has another protocol version, and with `integrity` if what answers is no agent.
  static Async<std::unique_ptr<AgentClient>> connect(Loop& loop, ChannelSpec channel, ClientOptions options,
                                                     CancelToken token = {});
  virtual ~AgentClient();
  AgentClient(const AgentClient&) = delete;
  AgentClient& operator=(const AgentClient&) = delete;

  const AgentInfo& info() const;
  virtual bool broken() const;
  Async<> wait_broken(CancelToken token = {});  // waits until the channel breaks; fails with the error that broke it

  // Starts a call; no effect if it already runs or is done. `state`: the agent has seen a newer epoch or generation.
  virtual Async<CallStatus> start(StartRequest request, CancelToken token = {});
  // Passes the log from `log_offset` on and all further events to the handlers until the call ends. The returned status
  // is done or absent, never running.
  virtual Async<CallStatus> attach(std::string call_key, std::int64_t log_offset, AttachHandlers handlers,
                                   CancelToken token = {});
  Async<CallStatus> status(std::string call_key, CancelToken token = {});  // the call's current status, without waiting
  Async<> acknowledge(std::string call_key, CancelToken token = {});       // forgets a call that is done
  // Cancels those of the calls that run, and makes the agent forget all of them. Unknown keys are ignored.
  virtual Async<> forget(std::vector<std::string> call_keys, std::string reason, CancelToken token = {});
  // Tells the call that the machine will be taken away at the deadline, so that the call saves a checkpoint. `leave`:
  // the call should then end with the error `preempted`, because another machine continues it. Succeeds, without
  // effect, if the call is not running.
  virtual Async<> preempt(std::string call_key, std::int64_t deadline_wall_us, bool leave, CancelToken token = {});
  // Asks the call to end, and kills it after grace_ms; attach then returns `cancelled`. Succeeds, without effect, if
  // the call is not running.
  Async<> cancel(std::string call_key, std::string reason, std::int64_t grace_ms = 10'000, CancelToken token = {});

  // put and get copy a file or a whole directory between this machine and the instance's work directory; remote paths
  // are relative. A file that the target already has, with equal size and SHA-256, is skipped; a partial transfer is
  // resumed. Fails with `integrity` if the digest differs at the end (the part file is removed).
  virtual Async<Transfer> put(std::string local_path, std::string remote_path, TransferProgress progress = {},
                              CancelToken token = {});
  // get asks `room` before it writes each piece of a file, so a resumed transfer counts no byte twice.
  virtual Async<Transfer> get(std::string remote_path, std::string local_path, TransferProgress progress = {},
                              CancelToken token = {}, Room room = {});
  // The instance fetches a file by itself, in parts at the same time. Parts that are done are kept across channels,
  // agents and runners; at most pulls_max run at once, others wait. A file that is already there, unchanged and of that
  // version, is not fetched again. Fails with `integrity` if the object changes meanwhile or has another digest; with
  // `network` and code cannot_reach if the instance gets no byte from the server at all; with `quota` and code
  // disk_full, before the first byte, if the disk has no room.
  virtual Async<Pulled> pull(PullRequest request, PullSign sign, TransferProgress progress = {},
                             CancelToken token = {});
  // From now on the instance passes on the shares of its pulls, at addresses that `listening` is told first. Lasts
  // until the channel breaks, or the token is cancelled. `invalid`: the agent is of an older build.
  virtual Async<> listen(ShareHandlers handlers, CancelToken token = {});
  // Tells digests of a share's parts; disputed: nothing that came from other machines is to be trusted.
  virtual void tell_digests(const std::string& share, const std::string& digests, bool disputed);
  // The instance sends a range of a file to a server by PUT. Fails with the server's status as `http_status` if it
  // refuses, and with `integrity` if the file is shorter.
  virtual Async<Pushed> push(PushRequest request, CancelToken token = {});
  // Unpacks an archive in the work directory (tar, also compressed with gzip, xz, bzip2 or zstd; zip) into a folder
  // there. Nothing is written outside the folder. Fails with `integrity` if the archive is damaged or holds paths that
  // lead out of it. Returns how many files were written, and their bytes.
  virtual Async<Transfer> unpack(std::string archive, std::string folder, CancelToken token = {});
  // Removes the files below a folder that are not in `keep`, whose paths are relative to it; then empty folders in it.
  virtual Async<> prune(std::string folder, std::vector<std::string> keep, CancelToken token = {});
  virtual Async<> remove(std::string folder, CancelToken token = {});  // a folder and what is in it
  // How many bytes can be written at a path: what its file system has free and, with `below`, what lies there already.
  virtual Async<std::int64_t> room(std::string path, bool below, CancelToken token = {});
  // Holds a folder's files under second names, so that the instance may remove the folder while it is fetched. `name`:
  // hexadecimal digits; what was held beside the folder under that name before goes. Returns the folder to fetch from,
  // which remove() lets go: another one, if the instance could hold it, else `folder`.
  Async<std::string> hold(std::string folder, std::string name, CancelToken token = {});
  Async<FileInfo> stat(std::string remote_path, bool digest, CancelToken token = {});
  Async<std::vector<FileInfo>> list(std::string remote_path, CancelToken token = {});  // lists recursively, sorted

  // Describes the agent's machine: {uptime_s, calls = {{key, state}..}, load, cores, memory_free_bytes,
  // disk_free_bytes, usage (usage.hpp), ..}.
  virtual Async<Value> describe(CancelToken token = {});
  Async<> shutdown(CancelToken token = {});  // ends the agent and everything below it; the directory is kept

 protected:
  AgentClient() = default;  // makes a client without a channel, for simulated agents

 private:
  struct State;
  explicit AgentClient(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace rille::agent
