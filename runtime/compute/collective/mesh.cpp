#include "runtime/compute/collective/mesh.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "runtime/core/base/time.hpp"

namespace rille::collective {

namespace {

using std::chrono::steady_clock;

// A rank on this machine usually answers at once: spinning is faster than sleeping if it has a core of its own. Spin
// only briefly, in case it needs this core.
constexpr int spins_max = 1000;

void pause_a_little() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

Result<std::unique_ptr<Mesh>> Mesh::create(Meeting meeting, int rank, bool shared_memory, std::int64_t timeout_ms,
                                           std::shared_ptr<Stop> stop) {
  std::unique_ptr<Mesh> mesh(new Mesh(rank, timeout_ms, std::move(stop)));
  const Limit limit(timeout_ms, *mesh->stop_);
  std::vector<std::unique_ptr<Link>> links(meeting.peers.size());
  if (shared_memory) { RILLE_TRY(links, share_memory(meeting, rank, limit)); }
  mesh->peers_.resize(meeting.peers.size());
  for (std::size_t r = 0; r < links.size(); ++r) {
    if (int(r) == rank) continue;
    auto& peer = mesh->peers_[r];
    peer.control = std::move(meeting.peers[r].control);
    mesh->shared_links_ += links[r] != nullptr;
    peer.link = links[r] ? std::move(links[r]) : tcp_link(std::move(meeting.peers[r].data));
  }
  if (rank > 0) mesh->host_ = local_address(mesh->peers_[0].control->fd()).host;
  mesh->spins_ = mesh->shared_links_ && cores() > mesh->shared_links_ ? spins_max : 0;
  return mesh;
}

Mesh::~Mesh() { leave(); }

void Mesh::leave() {
  if (broken_) return;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    say(r, Value().set("left", true));
    if (peers_[r].link) peers_[r].link->finish();
  }
  broken_ = make_error(ErrorKind::state, "the communicator is closed");
}

// Writes what the socket accepts at once; its buffer is empty except for bells.
void Mesh::say(std::size_t r, const Value& words) {
  if (!peers_[r].control) return;
  const Stop never;
  peers_[r].control->send(words, Limit(200, never)).ok();
}

Result<> Mesh::begin(std::string what) {
  if (broken_) return Error(*broken_);
  if (stop_->asked()) return fail(stop_->why());
  what_ = std::move(what);
  return success();
}

void Mesh::send(int to, const void* from, std::size_t bytes) {
  if (bytes) peers_[std::size_t(to)].outs.push_back({static_cast<const std::byte*>(from), bytes});
}

void Mesh::receive(int from, void* to, std::size_t bytes, std::function<Result<>()> then) {
  if (bytes) peers_[std::size_t(from)].ins.push_back({static_cast<std::byte*>(to), bytes, std::move(then)});
}

bool Mesh::unasked(int from, std::byte* to, std::size_t bytes) {
  Peer& peer = peers_[std::size_t(from)];
  if (!peer.link || !peer.ins.empty()) return false;
  while (bytes > 0) {
    auto n = peer.link->read_some(to, bytes);
    if (!n || *n == 0) return false;
    to += *n;
    bytes -= *n;
  }
  return true;
}

bool Mesh::received() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& p) { return p.ins.empty(); });
}

bool Mesh::done() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& p) { return p.idle(); });
}

Result<> Mesh::turn_until_received() { return turn_until(&Mesh::received); }
Result<> Mesh::turn_until_done() { return turn_until(&Mesh::done); }

Result<> Mesh::turn_until(bool (Mesh::*enough)() const) {
  int idle = 0;
  auto since = steady_clock::now();
  for (;;) {
    RILLE_TRY(const bool moved, turn());
    if ((this->*enough)()) return success();
    if (moved) {
      idle = 0;
      since = steady_clock::now();
    } else if (++idle > spins_) {
      RILLE_CHECK(sleep(since));
    } else {
      pause_a_little();
    }
  }
}

Result<bool> Mesh::turn() {
  bool moved = false;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    RILLE_TRY(const bool some, turn(r));
    moved = moved || some;
  }
  return moved;
}

Result<bool> Mesh::turn(std::size_t r) {
  Peer& peer = peers_[r];
  bool moved = false;
  while (!peer.outs.empty()) {
    auto& out = peer.outs.front();
    auto n = peer.link->write_some(out.at, out.left);
    if (!n) return closed(r, n.error());
    if (*n == 0) break;
    moved = true;
    out.at += *n;
    out.left -= *n;
    if (out.left == 0) peer.outs.pop_front();
  }
  if (peer.link && peer.link->pending()) {
    auto n = peer.link->flush();
    if (!n) return closed(r, n.error());
    moved = moved || *n > 0;
  }
  while (!peer.ins.empty()) {
    auto& in = peer.ins.front();
    auto n = peer.link->read_some(in.at, in.left);
    if (!n) return closed(r, n.error());
    if (*n == 0) break;
    moved = true;
    in.at += *n;
    in.left -= *n;
    if (in.left > 0) continue;
    const auto then = std::move(in.then);
    peer.ins.pop_front();
    if (then) RILLE_CHECK(then());
  }
  return moved;
}

// Nothing to do: tells the others to ring, checks all connections once more, then sleeps.
Result<> Mesh::sleep(Instant since) {
  for (auto& p : peers_)
    if (p.link) p.link->sleeps(true);
  auto moved = turn();
  auto woken = moved && !*moved ? poll_all(since) : success();
  for (auto& p : peers_)
    if (p.link) p.link->sleeps(false);
  if (!moved) return std::move(moved).error();
  return woken;
}

Result<> Mesh::poll_all(Instant since) {
  RILLE_CHECK(look_for_gone());
  std::vector<pollfd> set{{stop_->fd(), POLLIN, 0}};
  std::vector<std::size_t> whose;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    const Peer& p = peers_[r];
    if (!p.link) continue;
    if (p.gone.empty()) {
      set.push_back({p.control->fd(), POLLIN, 0});
      whose.push_back(r);
    }
    const short events = short((p.ins.empty() ? 0 : POLLIN) | (p.sends() ? POLLOUT : 0));
    if (p.link->socket() >= 0 && events) {
      set.push_back({p.link->socket(), events, 0});
      whose.push_back(peers_.size());
    }
  }
  auto end = since + std::chrono::milliseconds(timeout_ms_);
  if (const auto hurry = hurry_ns_.load()) end = std::min(end, Instant(std::chrono::nanoseconds(hurry)));
  Limit limit(0, *stop_);
  limit.end = end;
  // Short waits, since hurry() does not wake this thread.
  const int n = ::poll(set.data(), set.size(), std::min(limit.left_ms(), 1000));
  if (n < 0 && errno != EINTR) return errno_error("poll", "the sockets of ranks", errno);
  if (stop_->asked()) return stop_->why();
  for (std::size_t i = 1; n > 0 && i < set.size(); ++i)
    if (set[i].revents && whose[i - 1] < peers_.size()) RILLE_CHECK(listen_to(whose[i - 1]));
  if (n <= 0 && limit.left_ms() == 0) return late();
  return success();
}

// Reads the control connection: bells, and errors reported by the other rank.
Result<> Mesh::listen_to(std::size_t r) {
  Peer& peer = peers_[r];
  for (;;) {
    auto said = peer.control->receive_some();
    if (!said) {
      if (said.error().kind == ErrorKind::integrity) return lost(r, said.error());
      peer.gone = said.error().message;
      return success();
    }
    if (!*said) return success();
    const Value& words = **said;
    if (words.is_null()) continue;
    if (words.boolean("left")) {
      peer.left = true;
      peer.gone = "it has closed its communicator";
      return success();
    }
    if (!words["failed"].is_null()) {
      Error e = error_from_value(words["failed"]);
      e.resource = fmt::format("rank {}", r);                           // the rank that reported it
      if (e.kind == ErrorKind::cancelled) e.kind = ErrorKind::network;  // this rank was not cancelled
      return e;
    }
  }
}

Result<> Mesh::look() {
  what_ = "its work";
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (peers_[r].link && peers_[r].gone.empty()) RILLE_CHECK(listen_to(r));
  return look_for_gone();
}

// A lost rank ends the operation, unless it left after sending and receiving everything for it. Its data on a socket
// may arrive after its message that it leaves; the end of the socket marks the end of the data.
Result<> Mesh::look_for_gone() const {
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    const Peer& p = peers_[r];
    if (p.gone.empty()) continue;
    const bool may_come = p.left && !p.sends() && p.link->socket() >= 0;
    if (p.left && (p.idle() || may_come)) continue;
    return lost(r, make_error(ErrorKind::network, p.gone));
  }
  return success();
}

// A rank may have reported its reason before it closed its connection.
Error Mesh::closed(std::size_t r, const Error& why) {
  if (peers_[r].gone.empty())
    if (auto told = listen_to(r); !told) return std::move(told).error();
  const bool left = peers_[r].left && why.kind == ErrorKind::network;
  return lost(r, left ? make_error(ErrorKind::network, peers_[r].gone) : why);
}

Error Mesh::lost(std::size_t r, const Error& why) const {
  if (why.kind == ErrorKind::integrity) {
    return make_error(
        ErrorKind::integrity,
        fmt::format("rank {} cannot trust its connection to rank {} during {}: {}", rank_, r, what_, why.message),
        "start all ranks again; if it happens again, check the network between their machines");
  }
  return make_error(ErrorKind::network,
                    fmt::format("rank {} is gone during {} of rank {}: {}", r, what_, rank_, why.message),
                    "check the last output of that rank; then start all ranks again");
}

Error Mesh::late() const {
  std::string names;
  int absent = 0;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (peers_[r].idle()) continue;
    if (++absent <= 8) names += fmt::format("{}{}", absent > 1 ? ", " : "", r);
  }
  if (hurry_ns_.load()) {
    return make_error(ErrorKind::cancelled,
                      fmt::format("rank {} was cancelled during {}, while it waited for rank{} {}", rank_, what_,
                                  absent > 1 ? "s" : "", names));
  }
  return make_error(ErrorKind::timeout,
                    fmt::format("{} of rank {} waited {} for rank{} {}", what_, rank_, format_duration_ms(timeout_ms_),
                                absent > 1 ? "s" : "", names),
                    "all ranks must make the same calls in the same order; the option timeout allows a longer wait");
}

Error Mesh::fail(Error why) {
  if (broken_) return *broken_;
  if (why.resource.empty()) {  // not yet known to the other ranks
    const Value words = Value().set("failed", error_to_value(why));
    for (std::size_t r = 0; r < peers_.size(); ++r) say(r, words);
  }
  for (auto& p : peers_) {
    p.outs.clear();
    p.ins.clear();
  }
  broken_ = why;
  return why;
}

void Mesh::hurry(std::int64_t ms) {
  const auto end = steady_clock::now() + std::chrono::milliseconds(ms);
  hurry_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(end.time_since_epoch()).count();
}

}  // namespace rille::collective
