#include "runtime/workflow/agent/peers.hpp"

#include "runtime/core/loop/thread_job.hpp"
#include "runtime/core/net/private_network.hpp"

namespace rille::agent {

namespace {
constexpr std::int64_t proof_ms = 10'000, idle_ms = 300'000, sends_ms = 60'000;
constexpr std::int64_t tell_waiting_ms = 2'000;
constexpr std::int64_t waits_max_ms = 600'000;  // for a part; the machine that asks gives up long before
constexpr int places_tried_max = 3;
constexpr std::size_t shares_swept_at = 4'096;
}  // namespace

Peers::Peers(Loop& loop, std::vector<std::string> hosts)
    : loop_(loop), hosts_(std::move(hosts)), reads_(loop, reads_max) {}

std::vector<std::string> Peers::open(const Self& self) {
  if (self->users_++ > 0) return self->addresses_;
  self->open_ = std::make_unique<CancelSource>();
  const std::vector<std::string> hosts = self->hosts_.empty() ? net::private_hosts(addresses_max) : self->hosts_;
  self->addresses_.clear();
  for (const std::string& host : hosts) {
    auto listener = Listener::listen_tcp(self->loop_, host);
    if (!listener) continue;  // such as an address that has just gone
    self->addresses_.push_back((*listener)->address());
    self->loop_.spawn(accept(self, std::move(*listener), self->open_->token()));
  }
  return self->addresses_;
}

void Peers::close() {
  if (--users_ == 0) open_->cancel(make_error(ErrorKind::cancelled, "no runner wants parts passed on"));
}

void Peers::add(const std::shared_ptr<Share>& share) {
  if (shares_.size() >= shares_swept_at) std::erase_if(shares_, [](const auto& s) { return s.second.expired(); });
  shares_[share->id()] = share;
}

std::shared_ptr<Share> Peers::find(std::string_view id) {
  const auto it = shares_.find(id);
  return it == shares_.end() ? nullptr : it->second.lock();
}

Task<void> Peers::accept(Self self, std::shared_ptr<Listener> listener, CancelToken token) {
  while (!token.cancelled()) {
    auto stream = co_await listener->accept(token);
    if (token.cancelled()) break;
    if (!stream) {  // no free file descriptor, for example
      (co_await sleep_for(self->loop_, 1000, token)).ok();
    } else if (self->links_ < links_max) {
      ++self->links_;
      self->loop_.spawn(serve(self, std::move(*stream), token));
    }
  }
}

Task<void> Peers::serve(Self self, std::unique_ptr<Stream> stream, CancelToken token) {
  const std::function<std::string(std::string_view)> find = [self = self.get()](std::string_view id) {
    const std::shared_ptr<Share> share = self->find(id);
    return share ? share->key() : std::string();
  };
  const std::function<Async<std::unique_ptr<PeerLink>>(CancelToken)> prove = [&stream, &find](CancelToken t) {
    return PeerLink::accept(std::move(stream), find, std::move(t));
  };
  auto link = co_await with_deadline(self->loop_, proof_ms, token, "the proof of another machine", prove);
  const std::shared_ptr<Share> share = link ? self->find((*link)->id()) : nullptr;
  for (bool goes_on = share != nullptr; goes_on;) {
    const std::function<Async<std::string>(CancelToken)> read = [&link](CancelToken t) {
      return (*link)->read_message(std::move(t));
    };
    const auto message = co_await with_deadline(self->loop_, idle_ms, token, "another machine's request", read);
    const Result<PeerRequest> asked = message ? peer_request_from(*message) : Result<PeerRequest>(message.error());
    goes_on = asked.ok();
    if (goes_on) goes_on = (co_await answer(self, **link, share, *asked, token)).ok();
  }
  --self->links_;
}

// Until the part is here. False: it will not be.
Async<bool> Peers::await_part(Self self, PeerLink& link, std::shared_ptr<Share> share, PeerRequest asked,
                              CancelToken token) {
  const std::size_t part = static_cast<std::size_t>(asked.begin / share->part_bytes());
  const std::int64_t began_ns = self->loop_.clock().monotonic_ns();
  std::int64_t told_ns = began_ns;
  for (;;) {
    const std::int64_t now_ns = self->loop_.clock().monotonic_ns();
    if (share->ended() || !share->is_part(asked.begin, asked.end) || now_ns - began_ns > waits_max_ms * 1'000'000)
      co_return false;
    if (share->here(part)) co_return true;
    if (now_ns - told_ns >= tell_waiting_ms * 1'000'000) {
      told_ns = now_ns;
      const std::string waits = encode_peer(PeerAnswer{PeerAnswer::Kind::waits, share->got_bytes()});
      RILLE_CO_CHECK(co_await link.write(waits, token));
    }
    RILLE_CO_CHECK(co_await Share::change(share, tell_waiting_ms, token));
  }
}

// Answers with the part, after the runner was told its digest; or that it is gone.
Async<> Peers::answer(Self self, PeerLink& link, std::shared_ptr<Share> share, PeerRequest asked, CancelToken token) {
  const std::size_t index = static_cast<std::size_t>(asked.begin / share->part_bytes());
  std::string said = encode_peer(PeerAnswer{PeerAnswer::Kind::gone, 0});
  std::string bytes;
  std::optional<PullSlots::Held> slot;
  for (int tried = 0; tried < places_tried_max; ++tried) {
    RILLE_CO_TRY(const bool here, co_await await_part(self, link, share, asked, token));
    if (!here) break;
    if (!slot) {
      RILLE_CO_TRY(PullSlots::Held held, co_await PullSlots::take(self->reads_, token));
      slot.emplace(std::move(held));
    }
    const std::function<Result<Share::Part>()> read = [places = share->places(), asked] {
      return Share::read_part(places, asked.begin, asked.end);
    };
    auto got = co_await thread_job(self->loop_, read);
    if (!got) {  // perhaps the file was just renamed to its destination
      RILLE_CO_CHECK(co_await Share::change(share, tell_waiting_ms, token));
      continue;
    }
    share->report(index, got->digest);
    const std::string told = share->digest(index);
    if (!told.empty() && told != got->digest) break;
    said = encode_peer(PeerAnswer{PeerAnswer::Kind::bytes, share->got_bytes()});
    bytes = std::move(got->bytes);
    break;
  }
  const std::function<Async<>(CancelToken)> send = [&](CancelToken t) -> Async<> {
    RILLE_CO_CHECK(co_await link.write(said, t));
    co_return co_await link.write(bytes, t);
  };
  co_return co_await with_deadline(self->loop_, sends_ms, token, "sending a part to another machine", send);
}

}  // namespace rille::agent
