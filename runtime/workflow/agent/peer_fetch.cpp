#include "runtime/workflow/agent/peer_fetch.hpp"

#include <algorithm>

namespace rille::agent {

namespace {
constexpr std::size_t block_bytes = 256 << 10;
constexpr std::int64_t meet_again_ms = 100;
}  // namespace

// A part that a machine was asked for.
struct PeerFetch::Asked {
  PeerLink& link;
  PeerRequest part;
  const Sink& sink;
  const Pace& pace;
  std::int64_t end_ns;                               // by when it must be here
  std::int64_t seen_ns, seen_bytes = -1, given = 0;  // when it had advanced, and how far
  std::optional<Error> ours = {};                    // an error of the sink
};

PeerFetch::PeerFetch(Loop& loop, std::shared_ptr<Share> share, std::vector<Machine> machines,
                     std::shared_ptr<PeersShunned> shunned, PeerLimits limits)
    : loop_(loop), share_(std::move(share)), machines_(std::move(machines)), left_(machines_.size(), true),
      idle_(machines_.size()), shunned_(std::move(shunned)), limits_(limits) {}

bool PeerFetch::any() const {
  return !share_->disputed() && std::find(left_.begin(), left_.end(), true) != left_.end();
}

bool PeerFetch::shunned(const std::string& address) const {
  const auto it = shunned_->find(address);
  return it != shunned_->end() && it->second > loop_.clock().monotonic_ns();
}

// Tries its addresses; one that does not know the share may learn of it in the next moment.
Async<std::unique_ptr<PeerLink>> PeerFetch::meet(Self self, int machine, CancelToken token) {
  for (;;) {
    Error last = make_error(ErrorKind::network, "the machine has no address that can be reached");
    bool known = false;
    for (const std::string& address : self->machines_[static_cast<std::size_t>(machine)]) {
      if (self->shunned(address)) continue;
      auto made = co_await PeerLink::connect(self->loop_, address, self->share_->id(), self->share_->key(), token);
      if (made || token.cancelled()) co_return made;
      last = made.error();
      known |= last.kind == ErrorKind::auth;
    }
    if (!known) co_return last;
    RILLE_CO_CHECK(co_await sleep_for(self->loop_, meet_again_ms, token));
  }
}

Async<std::unique_ptr<PeerLink>> PeerFetch::link_to(Self self, int machine, CancelToken token) {
  auto& idle = self->idle_[static_cast<std::size_t>(machine)];
  if (!idle.empty()) {
    std::unique_ptr<PeerLink> link = std::move(idle.back());
    idle.pop_back();
    co_return std::move(link);
  }
  const std::function<Async<std::unique_ptr<PeerLink>>(CancelToken)> meet_it = [self, machine](CancelToken t) {
    return meet(self, machine, std::move(t));
  };
  auto made = co_await with_deadline(self->loop_, self->limits_.meet_ms, token, "another machine", meet_it);
  if (made || token.cancelled()) co_return made;
  const std::int64_t until_ns = self->loop_.clock().monotonic_ns() + self->limits_.shun_ms * 1'000'000;
  if (made.error().kind == ErrorKind::network || made.error().kind == ErrorKind::timeout)
    for (const std::string& address : self->machines_[static_cast<std::size_t>(machine)])
      (*self->shunned_)[address] = until_ns;
  co_return made;
}

bool PeerFetch::advances(Asked& asked, std::int64_t bytes) const {
  const std::int64_t now_ns = loop_.clock().monotonic_ns();
  if (bytes >= asked.seen_bytes + limits_.advance_bytes) asked.seen_ns = now_ns, asked.seen_bytes = bytes;
  return now_ns < asked.end_ns && now_ns - asked.seen_ns < limits_.silence_ms * 1'000'000;
}

// Until the part's bytes follow. False: they will not, or not soon enough.
Async<bool> PeerFetch::await_bytes(Self self, Asked& asked, CancelToken token) {
  const std::function<Async<std::string>(CancelToken)> read = [&asked](CancelToken t) {
    return asked.link.read_message(std::move(t));
  };
  for (std::int64_t got = 0;;) {
    RILLE_CO_TRY(const std::string message, co_await with_deadline(self->loop_, self->limits_.silence_ms, token,
                                                                   "another machine's answer", read));
    RILLE_CO_TRY(const PeerAnswer answer, peer_answer_from(message));
    if (answer.kind != PeerAnswer::Kind::waits) co_return answer.kind == PeerAnswer::Kind::bytes;
    got = std::max(got, answer.got_bytes);
    if (!self->advances(asked, got)) co_return false;
  }
}

Async<bool> PeerFetch::receive(Self self, Asked& asked, CancelToken token) {
  RILLE_CO_TRY(const bool comes, co_await await_bytes(self, asked, token));
  if (!comes) co_return false;
  std::string block(block_bytes, '\0');
  asked.seen_bytes = 0, asked.seen_ns = self->loop_.clock().monotonic_ns();
  const std::int64_t size = asked.part.end - asked.part.begin;
  std::size_t most = 0;
  const std::function<Async<std::size_t>(CancelToken)> read = [&](CancelToken t) {
    return asked.link.read(block.data(), most, std::move(t));
  };
  while (asked.given < size) {
    if (const std::int64_t wait_ms = asked.pace(); wait_ms > 0) {
      RILLE_CO_CHECK(co_await sleep_for(self->loop_, wait_ms, token));
      asked.seen_ns += wait_ms * 1'000'000, asked.end_ns += wait_ms * 1'000'000;
    }
    most = static_cast<std::size_t>(std::min<std::int64_t>(block_bytes, size - asked.given));
    RILLE_CO_TRY(const std::size_t n,
                 co_await with_deadline(self->loop_, self->limits_.silence_ms, token, "another machine's bytes", read));
    const Result<> kept = asked.sink(std::string_view(block.data(), n));
    if (!kept) {
      asked.ours = kept.error();
      co_return false;
    }
    asked.given += static_cast<std::int64_t>(n);
    if (asked.given < size && !self->advances(asked, asked.given)) co_return false;
  }
  co_return true;
}

Async<int> PeerFetch::get(Self self, PeerRequest part, Sink sink, Pace pace, CancelToken token) {
  const auto first = std::find(self->left_.begin(), self->left_.end(), true);
  if (!self->any()) co_return -1;
  const int machine = static_cast<int>(first - self->left_.begin());
  auto link = co_await link_to(self, machine, token);
  if (token.cancelled()) co_return token.reason();
  if (!link) {
    self->leave(machine);
    co_return -1;
  }
  const std::int64_t now_ns = self->loop_.clock().monotonic_ns();
  Asked asked{**link, part, sink, pace, now_ns + self->limits_.part_ms * 1'000'000, now_ns};
  const std::string request = encode_peer(part);
  const Result<> sent = co_await asked.link.write(request, token);
  Result<bool> given = false;
  if (sent) given = co_await receive(self, asked, token);
  if (token.cancelled()) co_return token.reason();
  if (asked.ours) co_return *asked.ours;
  if (given && *given) {
    self->idle_[static_cast<std::size_t>(machine)].push_back(std::move(*link));
    co_return machine;
  }
  self->leave(machine);
  co_return -1;
}

Async<bool> PeerFetch::check(Self self, int machine, std::size_t part, std::string digest, CancelToken token) {
  const std::int64_t end_ns = self->loop_.clock().monotonic_ns() + self->limits_.digest_ms * 1'000'000;
  while (self->share_->digest(part).empty() && !self->share_->disputed()) {
    const std::int64_t left_ms = (end_ns - self->loop_.clock().monotonic_ns()) / 1'000'000;
    if (left_ms <= 0) break;
    RILLE_CO_CHECK(co_await Share::change(self->share_, left_ms, token));
  }
  const std::string told = self->share_->digest(part);
  if (!self->share_->disputed() && told == digest) co_return true;
  self->leave(machine);
  const bool lied = !told.empty() && told != digest;
  if (lied && std::find(self->liars_.begin(), self->liars_.end(), machine) == self->liars_.end())
    self->liars_.push_back(machine);
  co_return false;
}

}  // namespace rille::agent
