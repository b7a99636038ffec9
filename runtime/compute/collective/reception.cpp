// Rank 0's side of the rendezvous.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/compute/collective/door.hpp"
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
      : in_(in), door_(listener), limit_(in.timeout_ms, stop), present_(std::size_t(in.world)) {}

  Result<Roll> run() {
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
      auto event = door_.next(limit_);
      if (!event) return event.error().kind == ErrorKind::timeout ? incomplete() : std::move(event).error();
      Guest& guest = *event->guest;
      switch (event->what) {
        case Door::What::came: greet(guest); break;
        case Door::What::left:
          if (guest.rank >= 0)
            return make_error(ErrorKind::network, fmt::format("rank {} has left while the others came", guest.rank));
          door_.show_out(&guest);
          break;
        case Door::What::said:
          if (guest.rank >= 0 || !admit(guest, event->message)) {
            door_.show_out(&guest);
            break;
          }
          RILLE_CHECK(examine(guest, event->message));
          --left;
          break;
      }
    }
    return success();
  }

  // Also to connections that have not identified themselves yet, and to those that come a little later.
  void tell_all(const Error& why) {
    for (auto& g : door_.guests()) refuse(*g, why);
    int left = in_.world - 1 - int(door_.guests().size());
    const bool late = why.kind == ErrorKind::timeout || why.kind == ErrorKind::cancelled;
    const Limit soon(late ? 0 : stragglers_ms, *limit_.stop);
    while (left > 0) {
      auto event = door_.next(soon);
      if (!event) return;
      if (event->what == Door::What::left) door_.show_out(event->guest);
      if (event->what != Door::What::came) continue;
      refuse(*event->guest, why);
      --left;
    }
  }

  void greet(Guest& guest) {
    guest.nonce = random_hex(16);
    if (!send_message(guest.fd.get(), Value().set("nonce", guest.nonce), limit_)) door_.show_out(&guest);
  }

  // Checks the token. A client with a wrong token is refused, and rank 0 keeps waiting for the others.
  bool admit(Guest& guest, Value& hello) {
    if (hello["rank"].is_null() || hello["nonce"].is_null()) return false;
    if (proves(in_.token, "hello", guest.nonce, hello)) return true;
    ++strangers_;
    refuse(guest,
           make_error(ErrorKind::auth, fmt::format("rank {} has another token than rank 0", hello.integer("rank")),
                      "give all ranks the same token"));
    return false;
  }

  Result<> examine(Guest& guest, const Value& hello) {
    const auto rank = hello.integer("rank", -1);
    guest.rank = int(std::clamp<std::int64_t>(rank, 0, world_max));
    guest.told = hello;
    if (hello.integer("world") != in_.world) {
      return make_error(ErrorKind::invalid,
                        fmt::format("rank {} was made with world = {}, rank 0 with world = {}", rank,
                                    hello.integer("world"), in_.world),
                        "world is the number of ranks: the same at all of them");
    }
    if (rank < 1 || rank >= in_.world || present_[std::size_t(rank)]) {
      const bool twice = rank >= 0 && rank < in_.world;
      return make_error(
          ErrorKind::invalid,
          fmt::format("rank {} of {} {}", rank, in_.world, twice ? "occurs twice" : "connected: there is no such rank"),
          "each process has a rank of its own, from 0 to world - 1");
    }
    if (hello.text("build") != in_.build) {
      return make_error(ErrorKind::config,
                        fmt::format("rank {} is of build {}, rank 0 of build {}", rank, hello.text("build"), in_.build),
                        "start the same rille everywhere");
    }
    if (hello.text("terms") != in_.terms) {
      return make_error(ErrorKind::invalid,
                        fmt::format("rank {} was made for {}, rank 0 for {}", rank, hello.text("terms"), in_.terms),
                        "device and transport are the same at all ranks");
    }
    present_[std::size_t(rank)] = &guest;
    return success();
  }

  Error incomplete() const {
    std::string names;
    int absent = 0;
    for (int r = 1; r < in_.world; ++r) {
      if (present_[std::size_t(r)]) continue;
      if (++absent <= 8) names += fmt::format("{}{}", absent > 1 ? ", " : "", r);
      if (absent == 9) names += ", ..";
    }
    return make_error(ErrorKind::timeout,
                      fmt::format("rank{} {} of {} did not come to {} within {}", absent > 1 ? "s" : "", names,
                                  in_.world, to_string(in_.address), format_duration_ms(in_.timeout_ms)),
                      strangers_ ? fmt::format("{} came with another token", strangers_)
                                 : "is it started, with this address, and can it reach it?");
  }

  void refuse(Guest& guest, const Error& why) {
    const Limit soon(1000, *limit_.stop);
    send_message(guest.fd.get(), Value().set("refused", error_to_value(why)), soon).ok();
  }

  Result<Roll> welcome() {
    Roll roll;
    roll.session = random_hex(16);
    roll.gift = in_.gift;
    roll.ranks.push_back({host_id(), in_.address});
    for (int r = 1; r < in_.world; ++r) {
      const Guest& g = *present_[std::size_t(r)];
      roll.ranks.push_back({g.told.text("host"), {remote_address(g.fd.get()).host, int(g.told.integer("port"))}});
    }
    Value::Array list;
    for (const auto& r : roll.ranks)
      list.push_back(Value().set("host", r.host).set("address", r.at.host).set("port", r.at.port));
    const Value words = Value().set("session", roll.session).set("gift", roll.gift).set("ranks", std::move(list));
    for (int r = 1; r < in_.world; ++r) {
      const Guest& g = *present_[std::size_t(r)];
      Value said = words;
      said.set("proof", proof_of(in_.token, "welcome", g.told.text("nonce"), words));
      if (!send_message(g.fd.get(), said, limit_))
        return make_error(ErrorKind::network, fmt::format("rank {} has left when all were there", r));
    }
    return roll;
  }

  const Invitation& in_;
  Door door_;
  Limit limit_;
  std::vector<Guest*> present_;  // by rank
  int strangers_ = 0;
};

}  // namespace

Result<Roll> receive_all(const Invitation& invitation, int listener, const Stop& stop) {
  return Reception(invitation, listener, stop).run();
}

}  // namespace rille::collective
