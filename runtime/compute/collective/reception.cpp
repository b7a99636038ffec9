// Rank 0's side of the rendezvous.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/compute/collective/acceptor.hpp"
#include "runtime/compute/collective/rendezvous.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::collective {

namespace {

// Ranks are started one after the other: an error is also sent to ranks that connect within this time.
constexpr std::int64_t stragglers_ms = 3000;

class Reception {
 public:
  Reception(const Invitation& in, int listener, const Stop& stop)
      : in_(in), acceptor_(listener, in.token, in.world), limit_(in.timeout_ms, stop), present_(std::size_t(in.world)) {
  }

  Result<Roster> run() {
    auto gathered = gather();
    if (!gathered) {
      tell_all(gathered.error());
      return std::move(gathered).error();
    }
    return welcome();
  }

 private:
  Result<> gather() {
    for (int left = in_.world - 1; left > 0;) {
      auto event = acceptor_.next(limit_);
      if (!event) return event.error().kind == ErrorKind::timeout ? incomplete() : std::move(event).error();
      Client& client = *event->client;
      switch (event->what) {
        case Acceptor::What::connected: break;
        case Acceptor::What::closed:
          if (client.rank >= 0)
            return make_error(ErrorKind::network,
                              fmt::format("rank {} disconnected while the other ranks connected", client.rank));
          acceptor_.drop(&client);
          break;
        case Acceptor::What::message:
          if (client.rank >= 0 || event->message["rank"].is_null()) {
            acceptor_.drop(&client);
            break;
          }
          RILLE_CHECK(examine(client, event->message));
          --left;
          break;
      }
    }
    return success();
  }

  // Also to ranks that have not identified themselves yet, and to those that come a little later.
  void tell_all(const Error& why) {
    for (auto& g : acceptor_.clients()) refuse(*g, why);
    int left = in_.world - 1 - int(acceptor_.clients().size());
    const bool late = why.kind == ErrorKind::timeout || why.kind == ErrorKind::cancelled;
    const Limit soon(late ? 0 : stragglers_ms, *limit_.stop);
    while (left > 0) {
      auto event = acceptor_.next(soon);
      if (!event) return;
      if (event->what == Acceptor::What::closed) acceptor_.drop(event->client);
      if (event->what != Acceptor::What::connected) continue;
      refuse(*event->client, why);
      --left;
    }
  }

  Result<> examine(Client& client, const Value& hello) {
    const auto rank = hello.integer("rank", -1);
    client.rank = int(std::clamp<std::int64_t>(rank, 0, world_max));
    client.hello = hello;
    if (hello.integer("world") != in_.world) {
      return make_error(ErrorKind::invalid,
                        fmt::format("rank {} was made with world = {}, rank 0 with world = {}", rank,
                                    hello.integer("world"), in_.world),
                        "world is the number of ranks: give all ranks the same number");
    }
    if (rank < 1 || rank >= in_.world || present_[std::size_t(rank)]) {
      const bool twice = rank >= 0 && rank < in_.world;
      return make_error(
          ErrorKind::invalid,
          fmt::format("rank {} of {} {}", rank, in_.world, twice ? "occurs twice" : "connected: there is no such rank"),
          "give each process a different rank, from 0 to world - 1");
    }
    if (hello.text("build") != in_.build) {
      return make_error(
          ErrorKind::config,
          fmt::format("rank {} runs build {} of Rille, rank 0 runs build {}", rank, hello.text("build"), in_.build),
          "use one build of rille at all ranks");
    }
    if (hello.text("terms") != in_.terms) {
      return make_error(ErrorKind::invalid,
                        fmt::format("rank {} was made for {}, rank 0 for {}", rank, hello.text("terms"), in_.terms),
                        "give all ranks the same device and transport");
    }
    present_[std::size_t(rank)] = &client;
    return success();
  }

  Error incomplete() const {
    const std::string strangers = acceptor_.strangers();
    std::string names;
    int absent = 0;
    for (int r = 1; r < in_.world; ++r) {
      if (present_[std::size_t(r)]) continue;
      if (++absent <= 8) names += fmt::format("{}{}", absent > 1 ? ", " : "", r);
      if (absent == 9) names += ", ..";
    }
    return make_error(ErrorKind::timeout,
                      fmt::format("rank{} {} of {} did not connect to {} within {}", absent > 1 ? "s" : "", names,
                                  in_.world, to_string(in_.address), format_duration_ms(in_.timeout_ms)),
                      strangers.empty() ? "is it started, with this address, and can it reach it?" : strangers);
  }

  void refuse(Client& client, const Error& why) {
    const Limit soon(1000, *limit_.stop);
    client.connection->send(Value().set("refused", error_to_value(why)), soon).ok();
  }

  Result<Roster> welcome() {
    Roster roster;
    roster.session = random_hex(16);
    roster.payload = in_.payload;
    roster.ranks.push_back({host_id(), in_.address});
    for (int r = 1; r < in_.world; ++r) {
      const Client& g = *present_[std::size_t(r)];
      roster.ranks.push_back({g.hello.text("host"), {g.address.host, int(g.hello.integer("port"))}});
    }
    Value::Array list;
    for (const auto& r : roster.ranks)
      list.push_back(Value().set("host", r.host).set("address", r.at.host).set("port", r.at.port));
    const Value words =
        Value().set("session", roster.session).set("payload", roster.payload).set("ranks", std::move(list));
    for (int r = 1; r < in_.world; ++r) {
      if (!present_[std::size_t(r)]->connection->send(words, limit_))
        return make_error(ErrorKind::network, fmt::format("rank {} has left when all were there", r));
    }
    return roster;
  }

  const Invitation& in_;
  Acceptor acceptor_;
  Limit limit_;
  std::vector<Client*> present_;  // by rank
};

}  // namespace

Result<Roster> receive_all(const Invitation& invitation, int listener, const Stop& stop) {
  return Reception(invitation, listener, stop).run();
}

}  // namespace rille::collective
