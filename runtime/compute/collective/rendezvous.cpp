#include "runtime/compute/collective/rendezvous.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>

#include "runtime/compute/collective/acceptor.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/loop/process_tree.hpp"

namespace rille::collective {

std::string host_id() {
  std::string boot = boot_id();
  char processes[PATH_MAX] = "";
  if (::readlink("/proc/self/ns/pid", processes, sizeof processes - 1) < 0) boot = random_hex(8);
  return fmt::format("{} {} {}", boot, processes, ::getuid());
}

Result<Roster> roster_from(const Value& welcome, int world) {
  Roster roster;
  roster.session = welcome.text("session");
  roster.payload = welcome.text("payload");
  const auto* ranks = welcome["ranks"].as_array();
  if (ranks) {
    for (const auto& r : *ranks) roster.ranks.push_back({r.text("host"), {r.text("address"), int(r.integer("port"))}});
  }
  if (roster.ranks.size() != std::size_t(world) || roster.session.empty()) {
    return make_error(ErrorKind::integrity, "rank 0 sent an invalid welcome");
  }
  return roster;
}

namespace {

// Adds the place to a timeout, which has no message of its own.
Error during(Error e, const std::string& what, std::int64_t timeout_ms) {
  if (e.kind == ErrorKind::timeout)
    e.message =
        fmt::format("{} within {}{}{}", what, format_duration_ms(timeout_ms), e.message.empty() ? "" : ": ", e.message);
  else if (e.kind == ErrorKind::network) e.message = fmt::format("{}: {}", what, e.message);
  return e;
}

// Proves the token at both sides of a connection to another rank.
Result<std::unique_ptr<Connection>> secure(const Invitation& in, Fd fd, const Address& at, const Limit& limit) {
  auto connection = std::make_unique<Connection>(std::move(fd), Connection::Side::connects, in.token);
  auto proven = connection->shake_hands(limit);
  if (proven) return connection;
  if (proven.error().kind != ErrorKind::auth) return std::move(proven).error();
  return make_error(ErrorKind::auth,
                    fmt::format("what listens at {} does not know the token of rank {}", to_string(at), in.rank),
                    "give all ranks the same token, and start the same rille everywhere");
}

Error no_answer(const Invitation& in, Error e, const Stop& stop) {
  e = during(std::move(e), fmt::format("rank 0 at {} gave no answer", to_string(in.address)), in.timeout_ms);
  if (e.hint.empty() && !stop.asked()) e.hint = "rank 0 has ended, or another program listens there";
  return e;
}

}  // namespace

Result<Roster> join(const Invitation& in, const Stop& stop, Fd& listener) {
  const Limit arrive(in.timeout_ms, stop);
  auto connected = connect_to(in.address, arrive);
  if (!connected) {
    return during(std::move(connected).error(),
                  fmt::format("rank {} did not reach rank 0 at {}", in.rank, to_string(in.address)), in.timeout_ms);
  }
  // Rank 0 decides: it waits for as long, and may have started later.
  const Limit limit(in.timeout_ms + 5000, stop);
  auto rank0 = secure(in, std::move(*connected), in.address, limit);
  if (!rank0) return no_answer(in, std::move(rank0).error(), stop);
  Address mine = local_address((*rank0)->fd());
  mine.port = 0;
  RILLE_TRY(listener, listen_at(mine));
  Value hello;
  hello.set("rank", in.rank).set("world", in.world).set("build", in.build).set("terms", in.terms);
  hello.set("host", host_id()).set("port", local_address(listener.get()).port);
  (*rank0)->send(hello, limit).ok();  // rank 0 may already have refused and closed
  auto welcome = (*rank0)->receive(limit);
  if (!welcome) return no_answer(in, std::move(welcome).error(), stop);
  if (!(*welcome)["refused"].is_null()) return error_from_value((*welcome)["refused"]);
  return roster_from(*welcome, in.world);
}

namespace {

constexpr const char* links[] = {"control", "data"};

// Rank 0 may listen at all of its addresses: use the one that worked.
const Address& place_of(const Invitation& in, const Roster& roster, int rank) {
  return rank == 0 ? in.address : roster.ranks[std::size_t(rank)].at;
}

Result<> introduce(const Invitation& in, const Roster& roster, int to, Meeting& meeting, const Limit& limit) {
  for (int k = 0; k < 2; ++k) {
    RILLE_TRY(auto fd, connect_to(place_of(in, roster, to), limit));
    RILLE_TRY(auto connection, secure(in, std::move(fd), place_of(in, roster, to), limit));
    Value me;
    me.set("rank", in.rank).set("to", to).set("link", links[k]).set("session", roster.session);
    RILLE_CHECK(connection->send(me, limit));
    auto& peer = meeting.peers[std::size_t(to)];
    (k == 0 ? peer.control : peer.data) = std::move(connection);
  }
  return success();
}

// Stores a connection from a higher rank. false: not one of our ranks; other communicators may have the same token.
bool place(const Invitation& in, const Roster& roster, Client& client, const Value& said, Meeting& meeting) {
  if (said.text("session") != roster.session) return false;
  const auto rank = said.integer("rank");
  if (rank <= in.rank || rank >= in.world || said.integer("to") != in.rank) return false;
  auto& peer = meeting.peers[std::size_t(rank)];
  auto& connection = said.text("link") == links[0] ? peer.control : peer.data;
  if (connection) return false;
  connection = std::move(client.connection);
  return true;
}

std::string missing(const Meeting& meeting, const Invitation& in) {
  for (int r = in.rank + 1; r < in.world; ++r) {
    const auto& peer = meeting.peers[std::size_t(r)];
    if (!peer.control || !peer.data) return fmt::format("rank {} did not connect to rank {}", r, in.rank);
  }
  return "a rank did not connect";
}

}  // namespace

Result<Meeting> connect_all(const Invitation& in, const Roster& roster, int listener, const Stop& stop) {
  const Limit limit(in.timeout_ms, stop);
  Meeting meeting;
  meeting.payload = roster.payload;
  meeting.peers.resize(std::size_t(in.world));
  for (int r = 0; r < in.world; ++r)
    meeting.peers[std::size_t(r)].same_host =
        roster.ranks[std::size_t(r)].host == roster.ranks[std::size_t(in.rank)].host;
  for (int to = 0; to < in.rank; ++to) {
    if (auto done = introduce(in, roster, to, meeting, limit); !done) {
      return during(
          std::move(done).error(),
          fmt::format("rank {} did not reach rank {} at {}", in.rank, to, to_string(place_of(in, roster, to))),
          in.timeout_ms);
    }
  }
  Acceptor acceptor(listener, in.token, in.world);
  for (int left = 2 * (in.world - 1 - in.rank); left > 0;) {
    auto event = acceptor.next(limit);
    if (!event) {
      Error e = during(std::move(event).error(), missing(meeting, in), in.timeout_ms);
      return e.hint.empty() ? std::move(e).with_hint(acceptor.strangers()) : e;
    }
    if (event->what == Acceptor::What::connected) continue;
    if (event->what == Acceptor::What::message && place(in, roster, *event->client, event->message, meeting)) --left;
    acceptor.drop(event->client);
  }
  return meeting;
}

Result<Meeting> meet(const Invitation& in, const Stop& stop) {
  Fd listener;
  Roster roster;
  if (in.rank == 0 && in.listener) {
    RILLE_TRY(roster, receive_all(in, in.listener->get(), stop));
    return connect_all(in, roster, in.listener->get(), stop);
  }
  if (in.rank == 0) {
    RILLE_TRY(listener, listen_at(in.address));
    RILLE_TRY(roster, receive_all(in, listener.get(), stop));
  } else {
    RILLE_TRY(roster, join(in, stop, listener));
  }
  return connect_all(in, roster, listener.get(), stop);
}

}  // namespace rille::collective
