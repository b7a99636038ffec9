#include "runtime/compute/collective/rendezvous.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <climits>
#include <fstream>

#include "runtime/compute/collective/acceptor.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/net/sign/parts.hpp"

namespace rille::collective {

std::string host_id() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char processes[PATH_MAX] = "";
  if (::readlink("/proc/self/ns/pid", processes, sizeof processes - 1) < 0) boot = random_hex(8);
  return fmt::format("{} {} {}", boot, processes, ::getuid());
}

std::string proof_of(const std::string& token, std::string_view what, std::string_view nonce, const Value& said) {
  return net::hex(net::hmac_sha256(token, fmt::format("rille {}\n{}\n{}", what, nonce, said.to_json())));
}

bool proves(const std::string& token, std::string_view what, std::string_view nonce, Value& said) {
  if (!said.as_object()) return false;
  const std::string shown = said.text("proof");
  said.as_object()->erase("proof");
  const std::string right = proof_of(token, what, nonce, said);
  unsigned differs = shown.size() != right.size();
  for (std::size_t i = 0; i < shown.size() && i < right.size(); ++i)  // constant time, so that timing reveals nothing
    differs |= unsigned(shown[i]) ^ unsigned(right[i]);
  return differs == 0;
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

Result<Value> answer_of(const Invitation& in, int fd, MessageParser& parser, const Limit& limit, const Stop& stop) {
  auto got = receive_message(fd, parser, limit);
  if (!got) {
    Error e = during(std::move(got).error(), fmt::format("rank 0 at {} gave no answer", to_string(in.address)),
                     in.timeout_ms);
    if (e.hint.empty() && !stop.asked()) e.hint = "rank 0 has ended, or another program listens there";
    return e;
  }
  if (!(*got)["refused"].is_null()) return error_from_value((*got)["refused"]);
  return got;
}

}  // namespace

Result<Roster> join(const Invitation& in, const Stop& stop, Fd& listener) {
  const Limit arrive(in.timeout_ms, stop);
  auto connected = connect_to(in.address, arrive);
  if (!connected) {
    return during(std::move(connected).error(),
                  fmt::format("rank {} did not reach rank 0 at {}", in.rank, to_string(in.address)), in.timeout_ms);
  }
  const int fd = connected->get();
  // Rank 0 decides: it waits for as long, and may have started later.
  const Limit limit(in.timeout_ms + 5000, stop);
  MessageParser parser;
  RILLE_TRY(const auto greeting, answer_of(in, fd, parser, limit, stop));
  Address mine = local_address(fd);
  mine.port = 0;
  RILLE_TRY(listener, listen_at(mine));
  const std::string nonce = random_hex(16);
  Value hello;
  hello.set("rank", in.rank).set("world", in.world).set("build", in.build).set("terms", in.terms);
  hello.set("host", host_id()).set("port", local_address(listener.get()).port).set("nonce", nonce);
  hello.set("proof", proof_of(in.token, "hello", greeting.text("nonce"), hello));
  send_message(fd, hello, limit).ok();  // rank 0 may already have refused and closed
  RILLE_TRY(auto welcome, answer_of(in, fd, parser, limit, stop));
  if (!proves(in.token, "welcome", nonce, welcome)) {
    return make_error(ErrorKind::auth,
                      fmt::format("the process that listens at {} does not have the token of rank {}",
                                  to_string(in.address), in.rank),
                      "give all ranks the same token");
  }
  return roster_from(welcome, in.world);
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
    Value me;
    me.set("rank", in.rank).set("to", to).set("link", links[k]);
    me.set("proof", proof_of(in.token, "link", roster.session, me));
    RILLE_CHECK(send_message(fd.get(), me, limit));
    auto& peer = meeting.peers[std::size_t(to)];
    (k == 0 ? peer.control : peer.data) = std::move(fd);
  }
  return success();
}

// Stores a connection from a higher rank. false: not one of our ranks.
bool place(const Invitation& in, const Roster& roster, Client& client, Value said, Meeting& meeting) {
  if (!proves(in.token, "link", roster.session, said)) return false;
  const auto rank = said.integer("rank");
  if (rank <= in.rank || rank >= in.world || said.integer("to") != in.rank) return false;
  auto& peer = meeting.peers[std::size_t(rank)];
  auto& fd = said.text("link") == links[0] ? peer.control : peer.data;
  if (fd.valid()) return false;
  fd = std::move(client.fd);
  return true;
}

std::string missing(const Meeting& meeting, const Invitation& in) {
  for (int r = in.rank + 1; r < in.world; ++r) {
    const auto& peer = meeting.peers[std::size_t(r)];
    if (!peer.control.valid() || !peer.data.valid())
      return fmt::format("rank {} did not connect to rank {}", r, in.rank);
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
  Acceptor acceptor(listener);
  for (int left = 2 * (in.world - 1 - in.rank); left > 0;) {
    auto event = acceptor.next(limit);
    if (!event) return during(std::move(event).error(), missing(meeting, in), in.timeout_ms);
    if (event->what == Acceptor::What::connected) continue;
    if (event->what == Acceptor::What::message && place(in, roster, *event->client, std::move(event->message), meeting))
      --left;
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
