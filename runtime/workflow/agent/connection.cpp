#include "runtime/workflow/agent/connection.hpp"

#include <fmt/format.h>

namespace rille::agent {

std::shared_ptr<Connection> Connection::over(Loop& loop, Stream& in, Stream& out, std::shared_ptr<void> owner) {
  auto self = std::make_shared<Connection>(loop, in, out, std::move(owner));
  self->heard_ns_ = loop.clock().monotonic_ns();
  return self;
}

std::shared_ptr<Connection> Connection::over(Loop& loop, std::unique_ptr<Stream> both) {
  std::shared_ptr<Stream> owner(std::move(both));
  Stream& stream = *owner;
  return over(loop, stream, stream, std::move(owner));
}

namespace {
// Time limit for reading the peer's last frames after a write has failed.
constexpr std::int64_t last_word_ms = 500;
}  // namespace

void Connection::enqueue(std::string bytes, std::optional<Future<Result<>>> done) {
  queue_.push_back({std::move(bytes), std::move(done)});
  if (writing_) return;
  writing_ = true;
  loop_.spawn(write_all(shared_from_this()));
}

Task<void> Connection::write_all(std::shared_ptr<Connection> self) {
  while (!self->queue_.empty() && !self->closed() && !self->deaf_) {
    Outgoing item = std::move(self->queue_.front());
    self->queue_.pop_front();
    auto written = co_await self->out_.write(item.bytes, self->closed_.token());
    if (!written && !self->closed()) {
      Error broken =
          make_error(
              ErrorKind::network, "the channel to the agent on the instance broke while writing",
              "the runner connects again by itself; if it stays, see whether the machine still exists: `rille leases`")
              .with_retry();
      self->deaf_ = std::move(broken).with_cause(written.error());
      self->loop_.spawn(close_after_last_word(self));
    }
    if (item.done) item.done->set(written.ok() ? success() : Result<>(written.error()));
  }
  for (Outgoing& item : std::exchange(self->queue_, {}))
    if (item.done) item.done->set(self->open());
  self->writing_ = false;
}

// Closes the connection a little after a failed write. The peer that no longer reads may have sent its reason, so
// receive() gets last_word_ms to read it.
Task<void> Connection::close_after_last_word(std::shared_ptr<Connection> self) {
  (co_await sleep_for(self->loop_, last_word_ms, self->closed_.token())).ok();
  self->close(*self->deaf_);
}

Result<> Connection::open() const {
  if (closed()) return closed_.token().reason();
  if (deaf_) return *deaf_;
  return success();
}

Async<> Connection::send(Frame frame) {
  RILLE_CO_CHECK(open());
  RILLE_CO_TRY(std::string bytes, encode_frame(frame));
  Future<Result<>> done(loop_);
  enqueue(std::move(bytes), done);
  co_return co_await done;
}

Result<> Connection::post(Frame frame) {
  RILLE_CHECK(open());
  RILLE_TRY(std::string bytes, encode_frame(frame));
  enqueue(std::move(bytes), {});
  return {};
}

Async<Frame> Connection::receive() {
  auto self = shared_from_this();
  std::string block(64 << 10, '\0');
  while (!closed()) {
    auto parsed = parser_.next();
    if (!parsed) {
      refuse(parsed.error());
      co_return std::move(parsed).error();
    }
    if (*parsed) {
      if ((*parsed)->type == FrameType::ping) continue;
      if ((*parsed)->type == FrameType::error) {
        Error theirs = error_from_value((*parsed)->header["error"]);
        close(theirs);
        co_return theirs;
      }
      co_return std::move(**parsed);
    }
    auto n = co_await in_.read(block.data(), block.size(), closed_.token());
    if (closed()) break;
    if (!n || *n == 0) {
      Error broken =
          make_error(
              ErrorKind::network, "the channel to the agent on the instance ended",
              "the runner connects again by itself; if it stays, see whether the machine still exists: `rille leases`")
              .with_retry();
      if (!n) broken = std::move(broken).with_cause(n.error());
      close(std::move(broken));
      break;
    }
    heard_ns_ = loop_.clock().monotonic_ns();
    parser_.feed(std::string_view(block.data(), *n));
  }
  co_return closed_.token().reason();
}

void Connection::start_heartbeat(Heartbeat heartbeat) { loop_.spawn(beat(shared_from_this(), heartbeat)); }

Task<void> Connection::beat(std::shared_ptr<Connection> self, Heartbeat heartbeat) {
  while ((co_await sleep_for(self->loop_, heartbeat.every_ms, self->closed_.token())).ok()) {
    std::int64_t silent_ms = (self->loop_.clock().monotonic_ns() - self->heard_ns_) / 1'000'000;
    if (silent_ms >= heartbeat.silence_ms) {
      self->close(make_error(ErrorKind::network,
                             fmt::format("the instance has sent nothing for {}", format_duration_ms(silent_ms)),
                             "the call continues on the instance; the runner connects again by itself")
                      .with_retry());
      break;
    }
    if (self->queue_.empty() && !self->writing_) self->post(Frame{}).ok();
  }
}

void Connection::refuse(const Error& reason) {
  if (closed()) return;
  Frame frame;
  frame.type = FrameType::error;
  frame.header.set("error", error_to_value(reason));
  // If no frame is queued before it, this frame fits the socket's buffer: write_all sends it before it first suspends.
  post(std::move(frame)).ok();
  close(reason);
}

void Connection::close(Error reason) { closed_.cancel(std::move(reason)); }

}  // namespace rille::agent
