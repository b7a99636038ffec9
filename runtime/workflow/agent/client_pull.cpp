// The runner's side of `pull`, `listen`, `prune`, `room` and `hold`. The runner signs the addresses; the bytes do not
// pass it.
#include <algorithm>

#include "runtime/workflow/agent/client_state.hpp"
#include "runtime/workflow/agent/heard.hpp"

namespace rille::agent {

namespace {
constexpr std::int64_t room_bytes_max = std::int64_t{1} << 60;
constexpr std::size_t held_path_bytes_max = 4096;
constexpr std::size_t prune_bytes_max = 8 << 20;  // of names in a frame, but for the last one

Async<> no_listening() { co_return make_error(ErrorKind::invalid, "a simulated agent passes nothing on"); }
}  // namespace

Async<Pulled> AgentClient::State::pull_once(Self self, const PullRequest& request, const PullAddress& address,
                                            TransferProgress progress, CancelToken token) {
  if (token.cancelled()) co_return token.reason();
  AttachHandlers handlers;
  handlers.progress = [state = self.get(), progress](const Value& value) {
    const Result<PullProgress> heard = pull_progress_from(value);
    if (!heard) state->connection->refuse(heard.error());
    else if (progress) progress(heard->done_bytes, heard->total_bytes);
  };
  Value header = pull_header(request, address, self->loop.clock().wall_us());
  std::string body;
  if (address.share) body = address.share->digests;
  RILLE_CO_TRY(Ticket ticket, self->ask("pull", std::move(header), std::move(body), &handlers));
  auto registration = token.on_cancel([answer = ticket.answer](const Error& why) { answer.set(why); });
  Leave leave{self, ticket.id, "cancel_pull", "pull"};
  const auto reply = co_await ticket.answer;
  leave.answered = !token.cancelled();
  if (!reply) co_return reply.error();
  auto pulled = pulled_from(reply->value, request, address.share ? address.share->machines.size() : 0);
  if (!pulled) self->connection->refuse(pulled.error());
  else if (progress) progress(pulled->size_bytes, pulled->size_bytes);
  co_return pulled;
}

// An address that expired is signed again: always once, then only if the transfer advanced since, or if the address
// lived for half of its time, as it does while another pull of the same source is waited for.
Async<Pulled> AgentClient::pull(PullRequest request, PullSign sign, TransferProgress progress, CancelToken token) {
  auto run = [](State::Self self, PullRequest wanted, PullSign make, TransferProgress told,
                CancelToken cancel) -> Async<Pulled> {
    std::int64_t most_bytes = 0;
    RILLE_CO_TRY(const PullSlots::Held slot, co_await PullSlots::take(self->pulls, cancel));
    for (bool first = true;; first = false) {
      const std::int64_t before_bytes = most_bytes, signed_ns = self->loop.clock().monotonic_ns();
      RILLE_CO_TRY(const PullAddress address, co_await make(cancel));
      if (address.share && wanted.size_bytes < 0) wanted.size_bytes = address.share->size_bytes;
      if (address.share && wanted.version.empty()) wanted.version = address.share->version;
      const std::int64_t lives_us = address.expires_wall_us - self->loop.clock().wall_us();
      TransferProgress progress_here = [&](std::int64_t done, std::int64_t total) {
        most_bytes = std::max(most_bytes, done);
        if (told) told(done, total);
      };
      auto pulled = co_await State::pull_once(self, wanted, address, std::move(progress_here), cancel);
      if (pulled || pulled.error().code != "address_expired") co_return pulled;
      const std::int64_t lived_us = (self->loop.clock().monotonic_ns() - signed_ns) / 1000;
      const bool lived = address.expires_wall_us > 0 && lives_us > 1'000'000 && lived_us >= lives_us / 2;
      if (!first && most_bytes <= before_bytes && !lived) co_return pulled;
    }
  };
  return run(state_, std::move(request), std::move(sign), std::move(progress), std::move(token));
}

Async<> AgentClient::listen(ShareHandlers handlers, CancelToken token) {
  auto run = [](State::Self self, ShareHandlers told, CancelToken cancel) -> Async<> {
    if (cancel.cancelled()) co_return cancel.reason();
    AttachHandlers handlers_here;
    handlers_here.progress = [state = self.get(), &told](const Value& value) {
      const Result<ShareNews> news = share_news_from(value);
      if (!news) return state->connection->refuse(news.error());
      if (news->kind == ShareNews::Kind::listening && told.listening) told.listening(news->addresses);
      if (news->kind == ShareNews::Kind::digest && told.digest) told.digest(news->share, news->part, news->sha256);
      if (news->kind == ShareNews::Kind::object && told.object)
        told.object(news->share, news->size_bytes, news->version);
    };
    RILLE_CO_TRY(State::Ticket ticket, self->ask("listen", Value::Object{}, std::string(), &handlers_here));
    auto registration = cancel.on_cancel([answer = ticket.answer](const Error& why) { answer.set(why); });
    State::Leave leave{self, ticket.id, "detach", "attach"};
    const auto reply = co_await ticket.answer;
    leave.answered = !cancel.cancelled();
    if (!reply) co_return reply.error();
    co_return success();
  };
  if (!state_) return no_listening();
  return run(state_, std::move(handlers), std::move(token));
}

void AgentClient::tell_digests(const std::string& share, const std::string& digests, bool disputed) {
  if (!state_ || state_->broken) return;
  Frame frame;
  frame.type = FrameType::request;
  frame.header.set("id", state_->next_id++).set("op", "digests").set("share", share);
  if (disputed) frame.header.set("disputed", true);
  frame.body = digests;
  state_->connection->post(std::move(frame)).ok();
}

// Sends the names in pieces, since a frame has a limit. Each piece speaks of the paths from its first name, or from the
// beginning, up to the next piece's first name.
Async<> AgentClient::prune(std::string folder, std::vector<std::string> keep, CancelToken token) {
  auto run = [](State::Self self, std::string path, std::vector<std::string> names, CancelToken cancel) -> Async<> {
    std::sort(names.begin(), names.end());
    std::string from;
    std::size_t at = 0;
    do {
      std::string piece;  // each name ends with a zero byte: no path holds one
      while (at < names.size() && piece.size() < prune_bytes_max) piece.append(names[at++]) += '\0';
      const std::string to = at < names.size() ? names[at] : "";
      Value header;
      header.set("path", path);
      piece.insert(0, from + '\0' + to + '\0');
      RILLE_CO_TRY(const Reply done,
                   co_await State::request(self, "prune", std::move(header), std::move(piece), cancel));
      from = to;
    } while (at < names.size());
    co_return success();
  };
  return run(state_, std::move(folder), std::move(keep), std::move(token));
}

Async<> AgentClient::remove(std::string folder, CancelToken token) {
  auto run = [](State::Self self, Value header, CancelToken cancel) -> Async<> {
    RILLE_CO_TRY(const Reply done,
                 co_await State::request(self, "prune", std::move(header), std::string(2, '\0'), std::move(cancel)));
    co_return success();
  };
  Value header;
  header.set("path", folder).set("whole", true);
  return run(state_, std::move(header), std::move(token));
}

Async<std::int64_t> AgentClient::room(std::string path, bool below, CancelToken token) {
  auto run = [](State::Self self, Value header, CancelToken cancel) -> Async<std::int64_t> {
    RILLE_CO_TRY(const Reply done,
                 co_await State::request(self, "room", std::move(header), std::string(), std::move(cancel)));
    const std::int64_t free = done.value.integer("free_bytes", -1), replaced = done.value.integer("below_bytes");
    if (free < 0 || replaced < 0 || free > room_bytes_max || replaced > room_bytes_max)
      co_return lie("room for a number of bytes that no disk has");
    co_return free + replaced;
  };
  Value header;
  header.set("path", path).set("below", below);
  return run(state_, std::move(header), std::move(token));
}

Async<std::string> AgentClient::hold(std::string folder, std::string name, CancelToken token) {
  auto run = [](State::Self self, Value header, CancelToken cancel) -> Async<std::string> {
    RILLE_CO_TRY(const Reply done,
                 co_await State::request(self, "hold", std::move(header), std::string(), std::move(cancel)));
    std::string held = done.value.text("path");
    if (held.empty() || held.size() > held_path_bytes_max) co_return lie("a folder that is held at no path");
    co_return held;
  };
  Value header;
  header.set("path", folder).set("name", name);
  return run(state_, std::move(header), std::move(token));
}

}  // namespace rille::agent
