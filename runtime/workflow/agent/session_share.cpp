// What a channel has to do with passing objects on: the shares of its pulls, what the runner tells of them, and what it
// is told.
#include <fmt/format.h>

#include "runtime/workflow/agent/session.hpp"

namespace rille::agent {

// Lasts until the channel ends or the runner detaches. With it end the shares.
Task<void> Session::listen(std::shared_ptr<Session> self, std::int64_t id) {
  const std::shared_ptr<Peers> peers = self->host_.peers;
  Loop& loop = self->host_.loop;
  Result<CancelToken> token = make_error(ErrorKind::state, "this connection passes objects on already");
  if (!self->listening_) token = self->follow(id);
  if (!token) {
    (co_await self->respond(id, token.error())).ok();
    co_return;
  }
  self->listening_ = id;
  const std::vector<std::string> addresses = Peers::open(peers);
  self->tell_runner(Value().set("addresses", Value::Array(addresses.begin(), addresses.end())));
  const Future<Result<>> over(loop);
  const auto registration = token->on_cancel([over](const Error& why) { over.set(why); });
  const Result<> why = co_await over;  // from here on the agent may be gone
  peers->close();
  self->listening_ = 0;
  for (const auto& [name, share] : std::exchange(self->shares_, {})) share->end();
  self->shares_in_order_.clear();
  self->attaches_.erase(id);
  (co_await self->respond(id, why.error())).ok();
}

// The runner's share of a pull, for its order. A pull that is repeated has the same one.
Result<> Session::share_into(PullOrder& order, const Value& header, const std::string& body) {
  RILLE_TRY(std::optional<PullShare> told, pull_share_from(header, body));
  if (!told || !listening_) return success();
  RILLE_TRY(const PartDigests digests, digests_from(told->digests));
  std::shared_ptr<Share>& share = shares_[told->id];
  if (!share) {
    share = std::make_shared<Share>(host_.loop, told->id, told->key, order.request.part_bytes);
    share->to_runner = [session = weak_from_this()](Value value) {
      if (const auto self = session.lock()) self->tell_runner(std::move(value));
    };
    shares_in_order_.push_back(told->id);
  }
  share->tell(digests);
  host_.peers->add(share);
  order.share = share;
  order.machines = std::move(told->machines);
  make_room_for_share();
  return success();
}

// The oldest ones go. Their pulls, if any still run, go on.
void Session::make_room_for_share() {
  while (shares_in_order_.size() > shares_max) {
    shares_.erase(shares_in_order_.front());
    shares_in_order_.pop_front();
  }
}

void Session::tell_share(const Value& header, const std::string& body) {
  const auto it = shares_.find(header.text("share"));
  const auto digests = digests_from(body);
  if (it == shares_.end() || !digests) return;
  it->second->tell(*digests);
  if (header.boolean("disputed")) it->second->dispute();
}

void Session::tell_runner(Value value) {
  if (!listening_) return;
  Frame frame;
  frame.type = FrameType::event;
  frame.header.set("id", listening_).set("event", "progress").set("value", std::move(value));
  connection_->post(std::move(frame)).ok();
}

}  // namespace rille::agent
