// The state that an AgentClient shares with its operations: the channel's command, the connection, and the pending
// requests. Operations are coroutines that hold it, so a client may be destroyed while they wait: they then fail.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "runtime/core/loop/subprocess.hpp"
#include "runtime/workflow/agent/client.hpp"
#include "runtime/workflow/agent/connection.hpp"
#include "runtime/workflow/agent/file_server.hpp"
#include "runtime/workflow/agent/pull.hpp"

namespace rille::agent {

struct AgentClient::State : std::enable_shared_from_this<AgentClient::State> {
  struct Ticket {
    std::int64_t id = 0;
    Future<Result<Reply>> answer;
  };
  struct Pending {
    Future<Result<Reply>> answer;
    const AttachHandlers* handlers = nullptr;  // an attach's callbacks; owned by the attach's coroutine
  };
  using Self = std::shared_ptr<State>;
  // Forgets a request that lasts, and ends it on the instance unless it was answered. It does so even if the coroutine
  // that waits, and owns the handlers, is destroyed while suspended.
  struct Leave {
    Self state;
    std::int64_t id;
    const char *op, *field;  // the request that ends it, and the field that names it there
    bool answered = false;
    ~Leave();
  };

  explicit State(Loop& l) : loop(l), greeted(l), pulls(l, pulls_max) {}

  Loop& loop;
  ChannelSpec channel;
  std::shared_ptr<Subprocess> command;
  std::shared_ptr<Connection> connection;
  AgentInfo info;
  std::string last_words;  // last lines of the command's standard error
  std::map<std::int64_t, Pending> pending;
  std::int64_t next_id = 1;
  std::optional<Error> broken;
  std::vector<Future<Result<>>> broken_waiters;
  Future<Result<>> greeted;
  PullSlots pulls;

  // Sends a request; the ticket receives the response. The caller must forget() the ticket's id.
  Result<Ticket> ask(const char* op, Value header, std::string body = {}, const AttachHandlers* handlers = nullptr);
  void forget(std::int64_t id) { pending.erase(id); }
  // Sends a request, waits for the response, and forgets the request.
  static Async<Reply> request(Self self, const char* op, Value header, std::string body, CancelToken token);

  static Task<void> read(Self self);
  static Task<void> read_last_words(Self self, std::shared_ptr<Subprocess> command);
  // take, hear and status_of fail with lie() if the agent may not send that; the channel then ends.
  Result<> take(Frame frame);
  Result<> hear(Frame frame);
  Result<CallStatus> status_of(const Reply& reply);
  std::string said() const;  // last_words without line ends at its end
  void fail(Error error);

  static Async<Pulled> pull_once(Self self, const PullRequest& request, const PullAddress& address,
                                 TransferProgress progress, CancelToken token);
  static Async<> put_file(Self self, std::string local, std::string remote, Transfer& sum, TransferProgress progress,
                          CancelToken token);
  static Async<> get_file(Self self, FileInfo remote, std::string root, std::string path, Transfer& sum,
                          TransferProgress progress, CancelToken token, Room room);
};

}  // namespace rille::agent
