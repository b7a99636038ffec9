// From a wish to a machine: the offer, the reservation, the create call, and what became of one that was not answered.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/id.hpp"
#include "runtime/lease/budget.hpp"
#include "runtime/lease/refused.hpp"
#include "runtime/lease/rows.hpp"
#include "runtime/lease/tag.hpp"

namespace rille::lease {

namespace {

constexpr std::int64_t send_window_us = 30'000'000;  // between the row and the call that it announces
constexpr int create_attempts_max = 5;
constexpr std::size_t refusals_max = 100;            // offers that one rent tries

using provider::Machine;
using provider::MachineState;

// A token is good for half the time that the provider remembers it; and the machine should have half its life before
// it, for its expiry is in the request.
bool can_resend(const Lease& lease, const provider::Traits& traits, std::int64_t now_us) {
  std::int64_t age_us = now_us - lease.created_us;
  if (age_us < 0) return false;  // the clock was set back: how old it is cannot be told
  return age_us < traits.token_lifetime_ms * 1000 / 2 && age_us < (lease.expires_us - lease.created_us) / 2;
}

}  // namespace

Async<Lease> Manager::acquire(Acquire request, Event event, CancelToken token) {
  std::string id = lease_id(request.fence.run, request.key);
  RILLE_CO_TRY(std::optional<Lease> known, find(id));
  if (known && known->state == "live") co_return std::move(*known);
  if (known && !known->replacing.empty() && known->ever_lived()) {  // its machine was lost before the script was told
    Replace moved;
    moved.id = id;
    moved.generation = known->generation;
    moved.fence = request.fence;
    moved.leases_max = request.leases_max;
    co_return co_await replace(std::move(moved), std::move(event), std::move(token));
  }
  // A row that was given up before there was a machine: the script has never seen it, so it may be asked for again.
  // An intent that was found is planned anew as well: its offer, its expiry and its money are of another time.
  bool fresh = !known || known->state == "intent" || (known->state == "released" && !known->live_us);
  if (!fresh && known->state != "creating")
    co_return make_error(ErrorKind::state, fmt::format("lease '{}' is {}", known->name, known->state),
                         "rent again under another name");
  Lease lease;
  Refused refused;
  if (!fresh) {
    lease = std::move(*known);
  } else {
    RILLE_CO_TRY(lease, co_await plan(request, std::move(known), refused, token));
    event("rent", lease.to_value(now_us()));
  }
  co_return co_await create(std::move(lease), std::move(request), std::move(refused), std::move(event),
                            std::move(token));
}

// Chooses an offer and commits what will be asked for, with its money, before a byte leaves. `before` is the row of the
// generation that came to nothing. Each generation has a token and a tag of its own. The row says `creating` at once,
// for a create call follows; the lease that is given says `intent`, for nothing has left yet.
Async<Lease> Manager::plan(const Acquire& request, std::optional<Lease> before, Refused& refused,
                           CancelToken token) {
  RILLE_CO_TRY(const Wish wish, wish_of(request.options));
  RILLE_CO_TRY(provider::Offer offer, co_await choose(wish, refused, token));
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(offer.provider));

  const Terms& terms = *wish.terms;
  std::int64_t now = now_us();
  auto planned = std::make_shared<Lease>();
  Lease& lease = *planned;
  lease.id = before ? before->id : lease_id(request.fence.run, request.key);
  lease.run = request.fence.run;
  lease.name = request.name;
  lease.scope = request.scope;
  lease.options = request.options;
  lease.generation = before ? before->generation + 1 : 1;
  if (before) lease.seen = before->seen, lease.replacing = before->replacing;
  lease.created_us = now;
  lease.state = "creating";
  lease.send_by_us = now + send_window_us;
  lease.provider = offer.provider;
  lease.price_micros_per_hour = terms.price_of(offer);
  lease.cap_micros_per_hour = terms.cap_of(offer);
  lease.disk_micros_per_hour = terms.disk_of(offer);
  lease.token = derive_uuid({"token", lease.id, std::to_string(lease.generation), offer.id});
  lease.expires_us = now + terms.ttl_ms * 1000;
  // A ttl is absolute: another machine does not lengthen it.
  if (before && before->ever_lived()) lease.expires_us = std::min(lease.expires_us, before->expires_us);
  // The provider is told in its own currency; where that has no rate, it is not told.
  if (offer.spot)
    lease.request.cap_micros_per_hour =
        std::max<Micros>(0, offer.from_dollars(lease.cap_micros_per_hour, terms.query.rates));
  lease.request.offer = std::move(offer);
  lease.request.token = lease.token;
  lease.request.orphan_after_ms = terms.orphan_after_ms;
  lease.request.idle_after_ms = terms.idle_after_ms;
  lease.request.idle_below = terms.idle_below;
  lease.request.hold_ms = terms.hold_ms;
  lease.request.disk_bytes = terms.disk_bytes;
  lease.request.extra = terms.extra;
  const std::int64_t teardown_ms = provider->traits().teardown_ms;
  std::int64_t most = request.leases_max;
  store::Journal::Write write = [planned, wanted = wish.terms, most, teardown_ms, now, until = lease.expires_us,
                                 install = install_](store::Db& db) -> Result<> {
    Lease& l = *planned;
    l.expires_us = until;  // the journal may try a write twice
    l.tenures.clear();
    if (!l.seen.state.empty()) { RILLE_TRY(l.tenures, read_tenures(db, l.id)); }
    RILLE_CHECK(reserve(db, l, *wanted, most, teardown_ms, now));
    l.tag = l.request.tag = tag_of(install, l);
    l.request.expires_wall_us = l.expires_us;
    return write_lease(db, l);
  };
  RILLE_CO_CHECK(co_await journal_.commit(std::move(write), request.fence));
  lease.seen = {lease.state, lease.generation, request.fence.epoch};
  lease.state = "intent";
  if (hooks_.written) RILLE_CO_CHECK(co_await hooks_.written());
  co_return std::move(lease);
}

// Sends the create call, or finds out what became of one that was sent. At most one machine per generation: a request
// is sent again only with a token that the provider remembers; without, the next generation needs proof that this one
// made nothing.
Async<Lease> Manager::create(Lease lease, Acquire request, Refused refused, Event event, CancelToken token) {
  bool unanswered = lease.state == "creating";  // something was sent whose answer is not known
  for (int attempt = 1;; ++attempt) {
    RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
    const provider::Traits& traits = provider->traits();
    std::optional<Error> refusal;
    if (unanswered) {
      bool resendable = can_resend(lease, traits, now_us());
      Result<std::optional<Machine>> found = co_await find_machine(lease, !resendable, token);
      if (!found) {
        if (token.cancelled() || attempt >= create_attempts_max) co_return found.error();
        RILLE_CO_CHECK(co_await pause(std::min<std::int64_t>(500LL << attempt, 10'000), token));
        continue;
      }
      if (*found) co_return co_await adopt(std::move(lease), std::move(**found), request.fence, std::move(event));
      if (!resendable)
        refusal = make_error(ErrorKind::capacity, "the create call of '" + lease.name + "' came to nothing");
    }
    if (token.cancelled()) {
      if (lease.state == "intent") (void)co_await save(lease, request.fence);  // settled without asking the provider
      co_return token.reason();
    }
    if (!refusal) {
      if (lease.state != "intent") {  // else its row was written for this
        lease.send_by_us = now_us() + send_window_us;
        RILLE_CO_CHECK(co_await save(lease, request.fence));
      }
      lease.state = "creating";
      // The commit may have taken long, or the machine slept: what is sent late is not covered by the row's proof.
      if (now_us() >= lease.send_by_us) {
        if (attempt < create_attempts_max) continue;
        co_return make_error(ErrorKind::timeout, "the journal takes longer than 30s to write: '" + lease.name +
                                                     "' is not rented", "look at the disk under RILLE_HOME");
      }
      Result<Machine> made = co_await provider->create(lease.request, token);
      bool ended = made && (made->state == MachineState::gone || made->state == MachineState::terminating);
      if (made && !ended)
        co_return co_await adopt(std::move(lease), std::move(*made), request.fence, std::move(event));
      if (ended)  // the machine of this token, which somebody has ended in the meantime
        made = make_error(ErrorKind::capacity, fmt::format("the machine of '{}' ({}) has ended already", lease.name,
                                                           made->id));
      if (token.cancelled()) co_return token.reason();
      if (!is_definitive(made.error())) {
        unanswered = true;
        if (attempt >= create_attempts_max) co_return made.error();  // release() settles the row
        RILLE_CO_CHECK(co_await pause(std::min<std::int64_t>(500LL << attempt, 10'000), token));
        continue;
      }
      if (unanswered && !ended) {
        // This refusal says nothing about an earlier send of the same request: that machine must be found or proven
        // absent.
        RILLE_CO_TRY(std::optional<Machine> found, co_await find_machine(lease, true, token));
        if (found) co_return co_await adopt(std::move(lease), std::move(*found), request.fence, std::move(event));
      }
      refusal = made.error();
      if (!ended) refused.add(lease.request.offer, *refusal), recent_->add(lease.request.offer, *refusal, now_us());
      event("refused", error_to_value(*refusal));
      if (!ended) attempt = 0;
    } else if (attempt >= create_attempts_max) {
      co_return *refusal;
    }
    if (refused.offers.size() >= refusals_max) co_return co_await give_up(std::move(lease), *refusal, request.fence);
    // Nothing was made: the next generation, with the next offer if this one refused.
    unanswered = false;
    Result<Lease> next = co_await plan(request, lease, refused, token);
    if (!next) {
      if (is_lost(next.error())) co_return next.error();
      Error why = next.error().kind == ErrorKind::capacity ? *refusal : next.error();
      lease.error = refusal->message;
      co_return co_await give_up(std::move(lease), std::move(why), request.fence);
    }
    lease = std::move(*next);
  }
}

// No machine was made, and none will be: the row says so.
Async<Lease> Manager::give_up(Lease lease, Error why, store::Fence fence) {
  lease.state = "released";
  lease.released_us = now_us();
  if (lease.error.empty()) lease.error = why.message;
  RILLE_CO_CHECK(co_await save(lease, std::move(fence)));
  co_return why;
}

// The provider has given a machine: it is the lease's, unless the row says by now that it shall end.
Async<Lease> Manager::adopt(Lease lease, Machine machine, store::Fence fence, Event event) {
  lease.state = "live";
  lease.machine_id = machine.id;
  lease.live_us = now_us();
  lease.replacing.clear();
  lease.machine = std::move(machine);
  if (Result<> saved = co_await save(lease, std::move(fence)); !saved) {
    Error e = saved.error();
    // Another's release may have looked before this machine was there. A new runner of the run wants it, however.
    if (is_moved(e))
      if (auto gone = co_await end_machine(lease); !gone) e = std::move(e).with_cause(gone.error());
    co_return e;
  }
  event("live", lease.to_value(lease.live_us));
  co_return lease;
}

// The machine behind a request whose answer is not known. One empty list never proves absence: until_proof goes on
// until nothing that was sent can still become visible.
Async<std::optional<Machine>> Manager::find_machine(Lease lease, bool until_proof, CancelToken token) {
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
  std::int64_t proof_us = absence_proven_us(lease, provider->traits());
  while (true) {
    std::int64_t asked_us = now_us();
    RILLE_CO_TRY(std::vector<Machine> machines,
                 co_await machines_of(provider, lease.request.offer.region, lease.tag, token));
    std::erase_if(machines, [&](const Machine& m) {
      return m.tag != lease.tag || m.state == MachineState::gone || m.state == MachineState::terminating;
    });
    if (!machines.empty()) {
      std::sort(machines.begin(), machines.end(), [](const Machine& a, const Machine& b) { return a.id < b.id; });
      // Any others end now, or at the latest with the lease: its release looks by tag.
      for (std::size_t i = 1; i < machines.size(); ++i) (void)co_await provider->terminate(machines[i].id, {});
      co_return std::optional<Machine>(machines.front());
    }
    if (!until_proof || asked_us >= proof_us) co_return std::optional<Machine>();
    RILLE_CO_CHECK(co_await pause(2'000, token));
  }
}

}  // namespace rille::lease
