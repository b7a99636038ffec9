// Connection: frames over a pair of byte streams, with a heartbeat. Frames leave in the order of sending; send() waits
// until the frame is written, which is the only backpressure. Only one coroutine may receive.
// Each side sends a ping at intervals and closes if nothing arrives from the peer for too long. A peer that only reads
// slowly still sends pings, so it is not taken for dead. The first failure closes the connection for good and fails all
// pending operations. Held by shared_ptr: the connection's tasks keep it alive until close(), which its user must call.
// Loop thread only.
#pragma once

#include <deque>
#include <memory>

#include "runtime/core/loop/stream.hpp"
#include "runtime/workflow/agent/client.hpp"
#include "runtime/workflow/agent/frame.hpp"

namespace rille::agent {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `owner` keeps the streams alive; the connection holds it until it is closed and its tasks have ended.
  static std::shared_ptr<Connection> over(Loop& loop, Stream& in, Stream& out, std::shared_ptr<void> owner);
  static std::shared_ptr<Connection> over(Loop& loop, std::unique_ptr<Stream> both);

  // Starts sending pings and checking for the peer's pings. A worker's line needs none: it cannot break silently.
  void start_heartbeat(Heartbeat heartbeat);

  Async<> send(Frame frame);
  // Queues a frame without waiting, for frames that are small and rare or whose number the sender limits. Fails with
  // `invalid` if the frame is larger than its type may be.
  Result<> post(Frame frame);
  // Returns the next frame that is not a ping. Fails with `network` (retryable) if the peer ended or went silent, with
  // `integrity` for a malformed frame, or with the error that the peer sent. A failure closes the connection.
  Async<Frame> receive();

  // Sends the reason to the peer, if that is possible without waiting, and closes the connection.
  void refuse(const Error& reason);
  void close(Error reason);
  bool closed() const { return closed_.cancelled(); }
  CancelToken token() const { return closed_.token(); }  // cancelled, with the reason, when the connection is closed
  std::int64_t heard_ns() const { return heard_ns_; }    // when the last frame arrived, by the loop's clock

  Connection(Loop& loop, Stream& in, Stream& out, std::shared_ptr<void> owner)
      : loop_(loop), in_(in), out_(out), owner_(std::move(owner)) {}

 private:
  struct Outgoing {
    std::string bytes;
    std::optional<Future<Result<>>> done;
  };
  static Task<void> write_all(std::shared_ptr<Connection> self);
  static Task<void> close_after_last_word(std::shared_ptr<Connection> self);
  Result<> open() const;  // success while frames can be sent; otherwise why not
  static Task<void> beat(std::shared_ptr<Connection> self, Heartbeat heartbeat);
  void enqueue(std::string bytes, std::optional<Future<Result<>>> done);

  Loop& loop_;
  Stream &in_, &out_;
  std::shared_ptr<void> owner_;
  CancelSource closed_;
  std::optional<Error> deaf_;  // set: a write failed with this error, so the peer no longer reads
  FrameParser parser_;
  std::deque<Outgoing> queue_;
  bool writing_ = false;
  std::int64_t heard_ns_ = 0;
};

}  // namespace rille::agent
