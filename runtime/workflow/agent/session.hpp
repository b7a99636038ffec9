// Session: one client's channel, on the agent's side. Sends hello, then answers requests: file requests one after the
// other on the thread pool, so that chunks are written in order; all other requests, also pushes, at once. Each attach
// streams until its call ends, each pull until its file is there, and each unpack has a thread of the pool until it
// ends; detach cancels an attach or an unpack, cancel_pull a pull. While a runner listens, the pulls of its channel
// pass their objects on (session_share.cpp). Host is the session's interface to the agent. Loop thread only.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "runtime/workflow/agent/admission.hpp"
#include "runtime/workflow/agent/call_table.hpp"
#include "runtime/workflow/agent/connection.hpp"
#include "runtime/workflow/agent/file_server.hpp"
#include "runtime/workflow/agent/peers.hpp"
#include "runtime/workflow/agent/pull.hpp"
#include "runtime/workflow/agent/push.hpp"

namespace rille::agent {

struct Host {  // outlives the sessions
  Loop& loop;
  const DaemonOptions& options;
  CallTable& calls;
  Admission& admission;
  std::shared_ptr<Puller> puller;
  std::shared_ptr<Peers> peers;
  std::function<Value()> hello;  // makes the hello's fields: instance, process, pid, started_wall_us
  std::function<Result<Value>()> describe;
  std::function<void()> shutdown;
  std::function<void()> used;  // called by requests that use the machine, not by queries
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  static constexpr std::size_t file_requests_max = 64, attaches_max = 256, pushes_max = 64, shares_max = 10'000;

  Session(Host& host, std::unique_ptr<Stream> stream);
  // Serves the client; returns when the channel has ended.
  static Task<void> serve(std::shared_ptr<Session> self);
  bool admitted() const { return epoch_.has_value(); }
  void close(Error reason) { connection_->refuse(reason); }

 private:
  Async<> greet();
  void dispatch(Frame frame);
  Result<> may(const std::string& op) const;
  Result<Reply> answer(const std::string& op, const Value& header);
  Result<Reply> start(const Value& header);
  void attach(std::int64_t id, const Value& header);
  // Room for one more request that lasts; its token is cancelled by detach and with the channel.
  Result<CancelToken> follow(std::int64_t id);
  static Task<void> unpack(std::shared_ptr<Session> self, std::int64_t id, Value header);
  void pull(std::int64_t id, const Value& header, const std::string& body);
  static Task<void> pull_one(std::shared_ptr<Session> self, std::int64_t id, PullOrder order, CancelToken token);
  static Task<void> listen(std::shared_ptr<Session> self, std::int64_t id);
  Result<> share_into(PullOrder& order, const Value& header, const std::string& body);
  void make_room_for_share();
  void tell_share(const Value& header, const std::string& body);
  void tell_runner(Value value);
  void tell_progress(std::int64_t id, std::int64_t done_bytes, std::int64_t total_bytes);
  static Task<void> send_progress(std::shared_ptr<Session> self, Frame frame);
  Async<> respond(std::int64_t id, Result<Reply> reply);
  static Task<void> respond_later(std::shared_ptr<Session> self, std::int64_t id, Result<Reply> reply);
  static Task<void> serve_push(std::shared_ptr<Session> self, std::int64_t id, Value header);
  static Task<void> serve_files(std::shared_ptr<Session> self);
  struct Offsets {  // how much of a call the runner has; metrics -1: it wants none
    Offsets(std::int64_t l, std::int64_t m) : log(l), metrics(m) {}  // not an aggregate: see loop/task.hpp
    std::int64_t log, metrics;
  };
  static Task<void> stream(std::shared_ptr<Session> self, std::int64_t id, std::shared_ptr<Call> call, Offsets from,
                           CancelToken token);
  static Async<bool> send_metrics(std::shared_ptr<Session> self, std::int64_t id, std::shared_ptr<Call> call,
                                  std::int64_t& offset);

  Host& host_;
  std::shared_ptr<Connection> connection_;
  FileServer files_;
  std::optional<std::int64_t> epoch_;  // of the runner, once admitted
  std::deque<Frame> file_requests_;
  bool serving_files_ = false;
  std::unique_ptr<net::HttpClient> http_;  // once a push was asked for
  std::size_t pushes_ = 0;
  std::optional<Future<Result<>>> file_room_;
  std::map<std::int64_t, std::unique_ptr<CancelSource>> attaches_;
  struct Pull {
    explicit Pull(const CancelToken& channel) : stop(channel) {}
    CancelSource stop;
    std::int64_t told_ns = 0;  // when its progress was last sent
    std::int64_t done_bytes = 0, total_bytes = 0;
  };
  std::map<std::int64_t, std::unique_ptr<Pull>> pulls_;
  std::optional<Future<Result<>>> pulls_ended_;
  std::int64_t listening_ = 0;  // the request `listen`; 0: nothing is passed on
  std::map<std::string, std::shared_ptr<Share>> shares_;
  std::deque<std::string> shares_in_order_;
  bool telling_ = false;  // a frame with progress waits to be written: none is queued behind it
};

}  // namespace rille::agent
