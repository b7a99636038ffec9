#include "runtime/workflow/agent/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/store/unpack.hpp"
#include "runtime/workflow/agent/paths.hpp"

namespace rille::agent {

namespace {
constexpr std::size_t log_chunk_bytes = 256 << 10;
constexpr std::int64_t tell_pull_every_ns = 200'000'000;

Frame event_frame(std::int64_t id, const char* event) {
  Frame frame;
  frame.type = FrameType::event;
  frame.header.set("id", id).set("event", event);
  return frame;
}

Frame progress_frame(std::int64_t id, std::int64_t done_bytes, std::int64_t total_bytes) {
  Frame frame = event_frame(id, "progress");
  frame.header.set("value", Value().set("done_bytes", done_bytes).set("total_bytes", total_bytes));
  return frame;
}
}  // namespace

Session::Session(Host& host, std::unique_ptr<Stream> stream)
    : host_(host), connection_(Connection::over(host.loop, std::move(stream))),
      files_(host.options.directory + "/work") {}

Async<> Session::greet() {
  RILLE_CO_TRY(Frame hello, co_await connection_->receive());
  if (hello.type != FrameType::hello)
    co_return make_error(ErrorKind::integrity, "agent protocol: the other side did not begin with a hello message");
  std::int64_t theirs = hello.header.integer("protocol");
  if (theirs != protocol_version)
    co_return make_error(
        ErrorKind::config,
        fmt::format("the runner speaks agent protocol {}, this agent speaks {}", theirs, protocol_version),
        "use the same version of rille on both sides, or release the instance and rent again");
  RILLE_CO_TRY(epoch_, host_.admission.admit(hello.header));
  Frame reply;
  reply.type = FrameType::hello;
  reply.header = host_.hello();
  reply.header.set("protocol", protocol_version).set("build", host_.options.build);
  co_return co_await connection_->send(std::move(reply));
}

Task<void> Session::serve(std::shared_ptr<Session> self) {
  self->connection_->post(Frame{}).ok();  // a first ping shows `rille agent connect` that the agent is alive
  self->connection_->start_heartbeat(self->host_.options.heartbeat);  // disconnects a peer that stays silent
  auto greeted = co_await self->greet();
  if (!greeted) self->connection_->refuse(greeted.error());
  while (!self->connection_->closed()) {
    auto frame = co_await self->connection_->receive();
    if (!frame) break;
    if (frame->type != FrameType::request) {
      self->connection_->refuse(make_error(ErrorKind::integrity, "agent protocol: a runner sends requests only"));
      break;
    }
    // While the queue of file requests is full, no frame is read, so that the client must wait.
    while (self->file_requests_.size() >= file_requests_max && !self->connection_->closed()) {
      self->file_room_.emplace(self->host_.loop);
      co_await *self->file_room_;
    }
    self->dispatch(std::move(*frame));
  }
  for (auto& [id, source] : std::exchange(self->attaches_, {})) source->cancel(self->connection_->token().reason());
  while (!self->pulls_.empty()) {  // the closed connection has cancelled them
    self->pulls_ended_.emplace(self->host_.loop);
    co_await *self->pulls_ended_;
  }
}

void Session::dispatch(Frame frame) {
  std::int64_t id = frame.header.integer("id");
  std::string op = frame.header.text("op");
  const bool asks = op == "describe" || op == "status" || op == "attach" || op == "detach" || op == "cancel_pull" ||
                    op == "listen" || op == "digests";
  const Result<> allowed = may(op);
  if (!asks && allowed && host_.used) host_.used();
  if (FileServer::handles(op)) {
    file_requests_.push_back(std::move(frame));
    if (!serving_files_) host_.loop.spawn(serve_files(shared_from_this()));
  } else if (op == "push" && allowed) {
    host_.loop.spawn(serve_push(shared_from_this(), id, std::move(frame.header)));
  } else if (op == "attach") {
    attach(id, frame.header);
  } else if (op == "unpack" && allowed) {
    host_.loop.spawn(unpack(shared_from_this(), id, std::move(frame.header)));
  } else if (op == "pull" && allowed) {
    pull(id, frame.header, frame.body);
  } else if (op == "listen" && allowed) {
    host_.loop.spawn(listen(shared_from_this(), id));
  } else if (op == "digests" && allowed) {
    tell_share(frame.header, frame.body);
  } else if (op == "cancel_pull") {
    if (auto it = pulls_.find(frame.header.integer("pull")); it != pulls_.end())
      it->second->stop.cancel(make_error(ErrorKind::cancelled, "the runner cancelled the pull"));
  } else if (op == "detach") {
    if (auto it = attaches_.find(frame.header.integer("attach")); it != attaches_.end())
      it->second->cancel(make_error(ErrorKind::cancelled, "detached"));
  } else {
    host_.loop.spawn(respond_later(shared_from_this(), id, allowed ? answer(op, frame.header) : allowed.error()));
    if (allowed && op == "shutdown") host_.shutdown();
  }
}

// Whatever changes something is fenced; a fenced runner may still look.
Result<> Session::may(const std::string& op) const {
  for (const char* looks :
       {"describe", "status", "attach", "detach", "cancel_pull", "put_begin", "get", "stat", "list", "room"})
    if (op == looks) return {};
  return host_.admission.check(*epoch_);
}

Result<Reply> Session::answer(const std::string& op, const Value& header) {
  Reply reply;
  std::string key = header.text("call");
  if (op == "start") return start(header);
  if (op == "ack") {
    RILLE_CHECK(host_.calls.acknowledge(key));
  } else if (op == "cancel") {
    if (auto call = host_.calls.find(key))
      call->cancel(make_error(ErrorKind::cancelled, header.text("reason", "cancelled")),
                   header.integer("grace_ms", Call::stop_grace_ms));
  } else if (op == "preempt") {
    if (auto call = host_.calls.find(key))
      call->preempting(header.integer("deadline_wall_us"), header.boolean("leave"));
  } else if (op == "forget") {
    const Value::Array* keys = header["calls"].as_array();
    for (std::size_t i = 0; keys && i < keys->size(); ++i)
      if (const std::string* unwanted = (*keys)[i].as_string())
        RILLE_CHECK(host_.calls.forget(*unwanted, header.text("reason")));
  } else if (op == "status") {
    auto call = host_.calls.find(key);
    if (!call) reply.value.set("state", "absent");
    else { RILLE_TRY(reply.value, call->status()); }
  } else if (op == "describe") {
    RILLE_TRY(reply.value, host_.describe());
  } else if (op != "shutdown") {
    return make_error(ErrorKind::invalid, "the agent does not know the request '" + op + "'",
                      "the runner may be newer than the agent");
  }
  return reply;
}

Result<Reply> Session::start(const Value& header) {
  CallRecord record;
  record.key = header.text("call");
  record.generation = header.integer("generation");
  record.epoch = header.integer("epoch");
  record.spec = header["spec"];
  const int after_attempt = static_cast<int>(header.integer("after_attempt"));
  RILLE_CHECK(host_.admission.start(record.key, record.epoch, record.generation));
  epoch_ = std::max(*epoch_, record.epoch);
  RILLE_TRY(auto call, host_.calls.start(std::move(record), after_attempt, header["secrets"]));
  Reply reply;
  RILLE_TRY(reply.value, call->status());
  return reply;
}

void Session::attach(std::int64_t id, const Value& header) {
  auto reply = [&](Result<Reply> r) { host_.loop.spawn(respond_later(shared_from_this(), id, std::move(r))); };
  std::int64_t offset = header.integer("offset");
  if (offset < 0)
    return reply(
        make_error(ErrorKind::invalid, fmt::format("the log offset {} is not valid: expected 0 or more", offset)));
  auto call = host_.calls.find(header.text("call"));
  if (!call) {
    Reply absent;
    absent.value.set("state", "absent");
    return reply(std::move(absent));
  }
  auto token = follow(id);
  if (!token) return reply(token.error());
  const Offsets from(offset, header.integer("metrics_offset", -1));
  host_.loop.spawn(stream(shared_from_this(), id, std::move(call), from, std::move(*token)));
}

Result<CancelToken> Session::follow(std::int64_t id) {
  if (attaches_.size() >= attaches_max || attaches_.count(id))
    return make_error(
        ErrorKind::state,
        fmt::format("{} calls are followed on this connection already, the limit attaches_max", attaches_.size()));
  auto source = std::make_unique<CancelSource>(connection_->token());
  CancelToken token = source->token();
  attaches_[id] = std::move(source);
  return token;
}

// {archive, folder} -> {files, size}
Task<void> Session::unpack(std::shared_ptr<Session> self, std::int64_t id, Value header) {
  auto run = [&]() -> Async<Reply> {
    const std::string root = self->host_.options.directory + "/work";
    RILLE_CO_TRY(std::string archive, inside(root, header.text("archive")));
    RILLE_CO_TRY(std::string folder, inside(root, header.text("folder")));
    RILLE_CO_TRY(const CancelToken token, self->follow(id));
    auto stop = std::make_shared<std::atomic<bool>>(false);
    auto registration = token.on_cancel([stop](const Error&) { stop->store(true); });
    auto job = [archive, folder, stop] { return store::unpack(archive, folder, *stop); };
    auto sum = co_await thread_job(self->host_.loop, std::move(job));
    self->attaches_.erase(id);
    if (!sum) co_return std::move(sum).error();
    Reply reply;
    reply.value.set("files", sum->files).set("size", sum->size_bytes);
    co_return reply;
  };
  auto reply = co_await run();
  (co_await self->respond(id, std::move(reply))).ok();
}

// Sends the call's metrics from the offset on, which it moves. False: the connection has broken.
Async<bool> Session::send_metrics(std::shared_ptr<Session> self, std::int64_t id, std::shared_ptr<Call> call,
                                  std::int64_t& offset) {
  if (offset > call->files().metrics_size_bytes()) offset = 0;  // of an earlier call with this key, since forgotten
  while (offset >= 0 && offset < call->files().metrics_size_bytes()) {
    Result<std::string> lines = call->files().read_metrics(offset, log_chunk_bytes);
    if (!lines || lines->empty()) break;
    Frame frame = event_frame(id, "metrics");
    frame.header.set("offset", offset);
    offset += static_cast<std::int64_t>(lines->size());
    frame.body = std::move(*lines);
    const Result<> sent = co_await self->connection_->send(std::move(frame));
    if (!sent) co_return false;
  }
  co_return true;
}

Task<void> Session::stream(std::shared_ptr<Session> self, std::int64_t id, std::shared_ptr<Call> call, Offsets from,
                           CancelToken token) {
  std::int64_t offset = from.log;
  std::uint64_t progress_seen = 0, checkpoint_seen = 0;
  std::int64_t notice_seen_us = 0;
  while (!token.cancelled()) {
    std::uint64_t seen = call->version();
    bool sent = true;
    while (sent && !token.cancelled() && offset < call->files().log_size_bytes()) {
      auto bytes = call->files().read_log(offset, log_chunk_bytes);
      if (!bytes || bytes->empty()) break;
      Frame frame = event_frame(id, "log");
      frame.header.set("offset", offset);
      offset += static_cast<std::int64_t>(bytes->size());
      frame.body = std::move(*bytes);
      sent = (co_await self->connection_->send(std::move(frame))).ok();
    }
    if (sent) {
      const Result<bool> told = co_await send_metrics(self, id, call, from.metrics);
      sent = told && *told;
    }
    if (call->progress_version() != progress_seen) {
      progress_seen = call->progress_version();
      Frame frame = event_frame(id, "progress");
      frame.header.set("value", call->progress());
      sent = sent && (co_await self->connection_->send(std::move(frame))).ok();
    }
    if (call->checkpoint_version() != checkpoint_seen) {
      checkpoint_seen = call->checkpoint_version();
      Frame frame = event_frame(id, "checkpoint");
      frame.header.set("value", call->checkpoint());
      sent = sent && (co_await self->connection_->send(std::move(frame))).ok();
    }
    if (call->state() == CallState::running && call->notice_wall_us() != notice_seen_us) {
      notice_seen_us = call->notice_wall_us();
      Frame frame = event_frame(id, "notice");
      frame.header.set("deadline_wall_us", notice_seen_us);
      sent = sent && (co_await self->connection_->send(std::move(frame))).ok();
    }
    if (!sent || token.cancelled()) break;
    if (call->version() != seen) continue;  // the call changed while its state was sent
    if (call->state() != CallState::running) {
      Reply reply;
      auto status = call->status();
      Result<Reply> result = status ? Result<Reply>(std::move(reply)) : Result<Reply>(status.error());
      if (status) result->value = std::move(*status);
      (co_await self->respond(id, std::move(result))).ok();
      break;
    }
    if (!(co_await call->changed(seen, token))) break;
  }
  self->attaches_.erase(id);
}

void Session::pull(std::int64_t id, const Value& header, const std::string& body) {
  auto refuse = [&](Error why) { host_.loop.spawn(respond_later(shared_from_this(), id, std::move(why))); };
  // The runner no longer counts a pull that it has cancelled; here that pull may still be ending.
  const auto wanted = static_cast<std::size_t>(
      std::count_if(pulls_.begin(), pulls_.end(), [](const auto& p) { return !p.second->stop.cancelled(); }));
  if (wanted >= pulls_max || pulls_.count(id))
    return refuse(make_error(
        ErrorKind::state, fmt::format("{} files are fetched for this connection already, the limit pulls_max", wanted),
        "use the same version of rille here and on the instance"));
  auto order = pull_order_from(header);
  if (!order) return refuse(order.error());
  const Result<> shared = share_into(*order, header, body);
  if (!shared) return refuse(shared.error());
  auto entry = std::make_unique<Pull>(connection_->token());
  entry->told_ns = host_.loop.clock().monotonic_ns();  // a file that is soon there needs no frame of its own
  CancelToken token = entry->stop.token();
  pulls_[id] = std::move(entry);
  host_.loop.spawn(pull_one(shared_from_this(), id, std::move(*order), std::move(token)));
}

Task<void> Session::pull_one(std::shared_ptr<Session> self, std::int64_t id, PullOrder order, CancelToken token) {
  TransferProgress progress = [self = self.get(), id](std::int64_t done, std::int64_t total) {
    self->tell_progress(id, done, total);
  };
  const auto pulled = co_await Puller::pull(self->host_.puller, std::move(order), std::move(progress), token);
  Result<Reply> reply = pulled ? Result<Reply>(Reply{}) : Result<Reply>(pulled.error());
  if (pulled) {
    reply->value.set("size", pulled->size_bytes).set("moved", pulled->moved_bytes);
    reply->value.set("version", pulled->version).set("sha256", pulled->sha256).set("shared", pulled->shared_bytes);
    if (!pulled->liars.empty()) reply->value.set("liars", Value::Array(pulled->liars.begin(), pulled->liars.end()));
  }
  const std::int64_t done_bytes = self->pulls_.at(id)->done_bytes, total_bytes = self->pulls_.at(id)->total_bytes;
  self->pulls_.erase(id);  // before the runner hears of it, and asks for the next one
  // The runner signs an address again only for a transfer that has advanced.
  if (!pulled && done_bytes > 0) (co_await self->connection_->send(progress_frame(id, done_bytes, total_bytes))).ok();
  (co_await self->respond(id, std::move(reply))).ok();
  if (self->pulls_.empty() && self->pulls_ended_) self->pulls_ended_->set(success());
}

void Session::tell_progress(std::int64_t id, std::int64_t done_bytes, std::int64_t total_bytes) {
  const auto it = pulls_.find(id);
  const std::int64_t now_ns = host_.loop.clock().monotonic_ns();
  if (it == pulls_.end()) return;
  it->second->done_bytes = done_bytes, it->second->total_bytes = total_bytes;
  if (telling_ || now_ns - it->second->told_ns < tell_pull_every_ns) return;
  it->second->told_ns = now_ns;
  if (host_.used) host_.used();  // a machine that fetches is not idle
  telling_ = true;
  host_.loop.spawn(send_progress(shared_from_this(), progress_frame(id, done_bytes, total_bytes)));
}

Task<void> Session::send_progress(std::shared_ptr<Session> self, Frame frame) {
  (co_await self->connection_->send(std::move(frame))).ok();
  self->telling_ = false;
}

Async<> Session::respond(std::int64_t id, Result<Reply> reply) {
  Frame frame;
  frame.type = FrameType::response;
  frame.header.set("id", id);
  if (reply) {
    frame.header.set("value", std::move(reply->value));
    frame.body = std::move(reply->body);
  } else {
    frame.header.set("error", error_to_value(reply.error()));
  }
  auto sent = co_await connection_->send(std::move(frame));
  if (sent || connection_->closed()) co_return sent;
  Frame failed;  // the response could not be sent because it is over the frame limit: send the error instead
  failed.type = FrameType::response;
  failed.header.set("id", id).set("error", error_to_value(sent.error()));
  co_return co_await connection_->send(std::move(failed));
}

Task<void> Session::respond_later(std::shared_ptr<Session> self, std::int64_t id, Result<Reply> reply) {
  (co_await self->respond(id, std::move(reply))).ok();
}

Task<void> Session::serve_push(std::shared_ptr<Session> self, std::int64_t id, Value header) {
  Result<Reply> reply = make_error(
      ErrorKind::state, fmt::format("{} files are sent on this connection already, the limit pushes_max", pushes_max));
  if (self->pushes_ < pushes_max) {
    if (!self->http_) self->http_ = std::make_unique<net::HttpClient>(self->host_.loop);
    ++self->pushes_;
    const CancelToken token = self->connection_->token();
    reply = co_await push(*self->http_, self->host_.options.directory + "/work", std::move(header), token);
    --self->pushes_;
  }
  (co_await self->respond(id, std::move(reply))).ok();
}

Task<void> Session::serve_files(std::shared_ptr<Session> self) {
  self->serving_files_ = true;
  while (!self->file_requests_.empty() && !self->connection_->closed()) {
    Frame frame = std::move(self->file_requests_.front());
    self->file_requests_.pop_front();
    if (self->file_room_) self->file_room_->set(success());
    std::int64_t id = frame.header.integer("id");
    auto job = [files = self->files_, allowed = self->may(frame.header.text("op")),
                request = std::move(frame)]() -> Result<Reply> {
      RILLE_CHECK(allowed);
      return files.handle(request.header.text("op"), request.header, request.body);
    };
    auto reply = co_await thread_job(self->host_.loop, std::move(job));
    (co_await self->respond(id, std::move(reply))).ok();
  }
  self->serving_files_ = false;
  if (self->file_room_) self->file_room_->set(success());
}

}  // namespace rille::agent
