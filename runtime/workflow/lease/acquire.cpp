// Rents a machine: chooses an offer, reserves the money, sends the create call, and recovers if the call was not
// answered.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/send_by.hpp"
#include "runtime/workflow/lease/budget.hpp"
#include "runtime/workflow/lease/owner.hpp"
#include "runtime/workflow/lease/parts.hpp"
#include "runtime/workflow/lease/refused.hpp"
#include "runtime/workflow/lease/rows.hpp"
#include "runtime/workflow/lease/tag.hpp"
#include "runtime/workflow/lease/volumes.hpp"
#include "runtime/workflow/provider/addressed.hpp"
#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/clocked.hpp"
#include "runtime/workflow/provider/outcome.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/usual_disk.hpp"

namespace rille::lease {

namespace {

constexpr std::int64_t send_window_us = 30'000'000;  // the create call is sent within this time after its row, or not
constexpr int create_attempts_max = 5;
constexpr std::int64_t volume_ready_us = 600'000'000;  // longest wait until a new volume can be attached
constexpr std::size_t refusals_max = 100;              // a rent gives up after this many offers have refused it

using provider::Machine;
using provider::MachineState;

bool has_ended(const Machine& m) { return m.state == MachineState::gone || m.state == MachineState::terminating; }

// Whether a create request may be sent again with its token: only within half the time that the provider remembers the
// token, and within half the lease's lifetime, because the request contains the lease's expiry.
bool can_resend(const Lease& lease, const provider::Traits& traits, std::int64_t now_us) {
  std::int64_t age_us = now_us - lease.created_us;
  if (age_us < 0) return false;  // the clock was set back: the age is unknown
  return age_us < traits.token_lifetime_ms * 1000 / 2 && age_us < (lease.expires_us - lease.created_us) / 2;
}

// Where a rent starts, according to the lease's existing row: lives: it has a machine; moves: it gets another machine;
// unasked: no request is open; asked: a create call was sent and its outcome is unknown.
enum class Stand { lives, moves, unasked, asked };

Result<Stand> stand_of(const Lease* known) {
  if (!known) return Stand::unasked;
  if (known->state == "live") return Stand::lives;
  if (!known->replacing.empty() && known->ever_lived()) return Stand::moves;  // it is being given another machine
  // A lease that was released before it had a machine can be requested again, because the script never received it. A
  // lease in state `intent` is planned again too, because its offer, expiry and money are out of date. A volume that
  // was deleted is made anew.
  const bool again = !known->live_us || is_volume(*known);
  if (known->state == "intent" || (known->state == "released" && again)) return Stand::unasked;
  if (known->state == "creating") return Stand::asked;
  return make_error(ErrorKind::state, fmt::format("lease '{}' is {}", known->name, known->state),
                    "rent again under another name");
}

Error never_ready(const Lease& volume) {
  const std::string problem = volume.machine->details.text("problem", provider::to_string(volume.machine->state));
  Error e = make_error(
      ErrorKind::state,
      fmt::format("the volume '{}' ({}) did not become usable: {}", volume.name, volume.machine->id, problem),
      "it is deleted; make it again, or with another kind or in another region");
  e.provider = volume.provider;
  return e;
}

Error created_none(const Lease& lease) {
  return make_error(ErrorKind::capacity, "the create request of '" + lease.name + "' created no machine",
                    "nothing runs and nothing costs: the next offer is tried by itself; if none is left, rent again");
}

Error ended_already(const Lease& lease, const std::string& machine_id) {
  return make_error(ErrorKind::capacity,
                    fmt::format("the machine of '{}' ({}) has ended already", lease.name, machine_id),
                    "the next offer is tried by itself; if none is left, rent again");
}

}  // namespace

Async<Lease> Manager::acquire(Acquire request, Event event, CancelToken token) {
  const auto renting = std::make_unique<Renting>();
  renting->request = std::move(request);
  renting->event = std::move(event);
  renting->token = std::move(token);
  const Acquire& wanted = renting->request;
  renting->id = lease_id(wanted.fence.run, wanted.key);
  RILLE_CO_TRY(renting->lease, known(renting->id));
  RILLE_CO_TRY(const Stand stand, stand_of(renting->lease.get()));
  if (stand == Stand::moves) {
    Replace moved;
    moved.id = renting->lease->id;
    moved.generation = renting->lease->generation;
    moved.fence = wanted.fence;
    moved.most = wanted.most;
    RILLE_CO_CHECK(co_await renew(*renting, std::move(moved)));
  }
  if (stand == Stand::unasked) {
    RILLE_CO_CHECK(co_await plan(*renting));
    renting->event(wanted.volume ? "volume" : "rent", renting->lease->to_value(now_us()));
  }
  if (stand == Stand::unasked || stand == Stand::asked) RILLE_CO_CHECK(co_await create(*renting));
  co_return std::move(*renting->lease);
}

// Builds the row of the lease's next generation; the money for it is not reserved yet.
Manager::Shared Manager::draft(const Renting& renting, const Terms& terms, const provider::Offer& offer) const {
  const Lease* before = renting.lease.get();
  const Acquire& request = renting.request;
  const std::int64_t now = now_us();
  auto drafted = std::make_shared<Lease>();
  Lease& lease = *drafted;
  lease.id = before ? before->id : renting.id;
  lease.run = request.fence.run;
  lease.name = request.name;
  lease.scope = request.scope;
  lease.options = request.options;
  lease.generation = before ? before->generation + 1 : 1;
  if (before) lease.number = before->number, lease.seen = before->seen, lease.replacing = before->replacing;
  lease.created_us = now;
  lease.state = "creating";
  lease.send_by_us = now + send_window_us;
  lease.provider = offer.provider;
  lease.price_micros_per_hour = request.volume ? 0 : terms.price_of(offer);  // a volume has only the disk's price
  const Result<provider::Provider*> provider = registry_.find(offer.provider);
  lease.disk_micros_per_hour = terms.disk_of(offer, provider ? provider::usual_disk_bytes(*provider, offer) : 0);
  lease.cap_micros_per_hour = request.volume ? 0 : terms.cap_of(offer, lease.disk_micros_per_hour);
  lease.token = derive_uuid({"token", lease.id, std::to_string(lease.generation), offer.id});
  lease.expires_us = now + terms.ttl_ms * 1000;
  // A replacement machine keeps the lease's expiry. A lease that is rented anew (live_us is 0) gets a new expiry.
  if (before && (before->live_us || !before->replacing.empty()))
    lease.expires_us = std::min(lease.expires_us, before->expires_us);
  // The highest price is sent in the provider's currency; it is not sent if the exchange rate is unknown.
  if (offer.spot)
    lease.request.cap_micros_per_hour =
        std::max<Micros>(0, offer.from_dollars(lease.cap_micros_per_hour, terms.query.rates));
  lease.request.offer = offer;
  lease.request.token = lease.token;
  lease.request.orphan_after_ms = terms.orphan_after_ms;
  lease.request.idle_after_ms = terms.idle_after_ms;
  lease.request.idle_below = terms.idle_below;
  lease.request.hold_ms = terms.hold_ms;
  lease.request.disk_bytes = terms.disk_bytes;
  lease.request.extra = terms.extra;
  provider::tell_cluster(lease.request.extra,
                         terms.cluster.empty() ? "" : cluster_of(install_, lease.run, terms.cluster));
  const std::string& wanted = terms.query.interconnect;
  if (!wanted.empty() && !offer.rdma.empty() && provider::has_interconnect("", offer.rdma, wanted))
    provider::tell_rdma(lease.request.extra);
  return drafted;
}

namespace {
// The same wish in the zone of the volumes, where disks have one.
std::shared_ptr<const Terms> in_zone_of(const std::vector<provider::Mount>& mounts, std::shared_ptr<const Terms> wish) {
  if (mounts.empty() || mounts.front().zone.empty()) return wish;
  auto there = std::make_shared<Terms>(*wish);
  there->query.zone = mounts.front().zone;
  there->asks += " in zone " + there->query.zone;
  return there;
}
}  // namespace

// Chooses an offer and commits the request with its money before anything is sent. `renting.lease` is the generation
// that failed, and becomes the planned one. Each generation has its own token and tag. The row says `creating` at once,
// because a create call follows; the lease in memory says `intent`, because nothing was sent yet.
Async<> Manager::plan(Renting& renting) {
  if (renting.request.volume) co_return co_await plan_volume(renting);
  RILLE_CO_TRY(std::vector<provider::Mount> mounts, mounts_of(journal_.reader(), renting.request.options));
  RILLE_CO_TRY(const Value options, placed(journal_.reader(), renting.request.options));
  RILLE_CO_TRY(Wish wish, queries_.wish_of(options));
  wish = in_zone_of(mounts, std::move(wish));
  RILLE_CO_CHECK(co_await queries_.check_named_gpus(wish, renting.token));
  RILLE_CO_TRY(const provider::Offer* const offer, co_await choose(wish, renting.refused, renting.token));
  if (std::optional<Error> why = queries_.gpu_unusable(*wish, *offer)) co_return std::move(*why);
  co_return co_await commit_plan(renting, wish, *offer, std::move(mounts));
}

namespace {

// A volume has no end that could be reserved, so a budget must have room for a month of it.
Result<> reserve_month(store::Db& db, Lease& l, const Terms& terms, const LeaseLimit& most) {
  const std::int64_t expires_us = std::exchange(l.expires_us, l.created_us + volume_reserve_ms * 1000);
  Result<> reserved = reserve(db, l, terms, most, 0, l.created_us);
  l.expires_us = expires_us;
  if (reserved || reserved.error().kind != ErrorKind::budget || l.disk_micros_per_hour < 0) return reserved;
  Error e = std::move(reserved).error();
  e.hint = "a budget must have room for a month of a volume: raise it, or make the volume smaller";
  return e;
}

}  // namespace

Async<> Manager::commit_plan(Renting& renting, Wish wish, const provider::Offer& offer,
                             std::vector<provider::Mount> mounts) {
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(offer.provider));
  RILLE_CO_TRY(const std::string owner, co_await known_owner(*search_->owners, provider, offer.region, renting.token));
  const Shared planned = draft(renting, *wish, offer);
  provider::tell_mounts(planned->request.extra, mounts);
  const std::int64_t teardown_ms = provider->traits().teardown_ms;
  const std::int64_t skew_us = provider::skew_of(provider);
  const bool volume = renting.request.volume;
  const auto bear_end = [skew_us, volume, install = install_](Lease& l) {
    l.tag = l.request.tag = tag_of(install, l);
    l.request.expires_wall_us = volume ? 0 : l.expires_us + skew_us;  // the expiry by the provider's clock
  };
  bear_end(*planned);
  const Micros address = volume ? 0 : provider::address_micros_per_hour(provider, offer);
  // The JSON texts are made on the journal's thread: here the loop has more work per lease than that thread.
  store::Journal::Write write = [planned, owner, wish, most = renting.request.most, teardown_ms, address, bear_end,
                                 volume, until = planned->expires_us](store::Db& db) -> Result<> {
    Lease& l = *planned;
    const std::int64_t before_us = std::exchange(l.expires_us, until);  // the journal may try a write twice
    l.tenures.clear();
    const bool first = l.seen.state.empty();
    if (!first) { RILLE_TRY(l.tenures, read_tenures(db, l.number)); }
    if (volume) RILLE_CHECK(check_name_free(db, l));
    RILLE_CHECK(check_free(db, l, l.created_us));
    if (volume) RILLE_CHECK(reserve_month(db, l, *wish, most));
    else RILLE_CHECK(reserve(db, l, *wish, most, teardown_ms, l.created_us, address));
    if (l.expires_us != before_us) bear_end(l);
    RILLE_CHECK(write_lease(db, l));
    if (first) l.number = db.last_row();
    RILLE_CHECK(record_address(db, l, address));
    l.has_no_address = address == 0;
    return record_owner(db, l, owner);
  };
  RILLE_CO_CHECK(co_await journal_.commit(std::move(write), renting.request.fence));
  planned->seen.state = planned->state;
  planned->seen.generation = planned->generation;
  planned->seen.epoch = renting.request.fence.epoch;
  planned->state = "intent";
  if (hooks_.written) RILLE_CO_CHECK(co_await hooks_.written());
  renting.lease = planned;
  co_return success();
}

// No machine was created: plans the next generation, with the next offer if this one refused, or gives up.
Async<> Manager::plan_next(Renting& renting, Error refusal) {
  if (renting.refused.offers.size() >= refusals_max) co_return co_await give_up(renting, std::move(refusal));
  Result<> next = co_await plan(renting);
  if (next || is_lost(next.error())) co_return next;
  renting.lease->error = refusal.message;
  if (next.error().code == price_jump) refusal.hint = next.error().hint;
  Error why = next.error().kind == ErrorKind::capacity ? std::move(refusal) : std::move(next).error();
  co_return co_await give_up(renting, std::move(why));
}

// Sends the create call that the lease's row announces. If writing the row took longer than the send window, the call
// is not sent, and the error says so (is_late).
Async<Machine> Manager::send_create(Lease& lease, provider::Provider* provider, CancelToken token) {
  lease.state = "creating";
  search_->proofs.of(loop_.clock(), lease.id, absence_proven_us(lease, provider->traits()));
  lease.request.send_by_wall_us = lease.send_by_us;
  search_->places[lease.run].emplace(lease.provider, lease.request.offer.region);
  RILLE_CO_CHECK(check_send_by(lease.send_by_us, now_us()));
  co_return co_await provider->create(lease.request, token);
}

Error Manager::never_in_time(const Lease& lease, Error why) {
  why.message =
      fmt::format("'{}' is not rented: {} times this machine was too slow to send the create request in time: {}",
                  lease.name, create_attempts_max, why.message);
  return why;
}

void Manager::tell_refused(Renting& renting, const Error& refusal) {
  const Lease& lease = *renting.lease;
  renting.event("refused", error_to_value(refusal)
                               .set("name", lease.name)
                               .set("offer", lease.request.offer.id)
                               .set("provider", lease.provider));
}

// Sends the create call, or finds out the result of an earlier one. At most one machine per generation: a request is
// resent only with a token that the provider still remembers; otherwise the next generation needs proof that this one
// created nothing.
Async<> Manager::create(Renting& renting) {
  const CancelToken& token = renting.token;
  bool unanswered = renting.lease->state == "creating";  // a request was sent and its answer is unknown
  for (int attempt = 1;; ++attempt) {
    Lease& lease = *renting.lease;
    RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
    std::optional<Error> refusal;
    if (unanswered) {
      const bool resendable = can_resend(lease, provider->traits(), now_us());
      const Result<bool> found = co_await find_machine(renting, !resendable);
      if (!found) {
        const bool elsewhere = is_other_account(found.error());
        if (elsewhere || token.cancelled() || attempt >= create_attempts_max) co_return found.error();
        RILLE_CO_CHECK(co_await pause(std::min<std::int64_t>(500LL << attempt, 10'000), token));
        continue;
      }
      if (*found) co_return co_await adopt(renting);
      if (!resendable) refusal = created_none(lease);
    }
    if (token.cancelled()) {
      if (lease.state == "intent") (void)co_await save(renting.lease, renting.request.fence);  // nothing was sent
      co_return token.reason();
    }
    if (!refusal) {
      if (lease.state != "intent") {  // the row is older than this attempt: write it again before sending
        lease.send_by_us = now_us() + send_window_us;
        RILLE_CO_CHECK(co_await save(renting.lease, renting.request.fence));
      }
      Result<Machine> made = co_await send_create(lease, provider, token);
      if (!made && is_late(made.error())) {  // nothing was sent: write the row again and retry
        if (token.cancelled() || attempt < create_attempts_max) continue;
        co_return never_in_time(lease, std::move(made).error());  // release() later ends the machine, if there is one
      }
      const bool ended = made && has_ended(*made);
      if (made && !ended) {
        lease.machine = std::move(*made);
        co_return co_await adopt(renting);
      }
      if (ended) {  // the provider returned the machine of an earlier send with this token, and that machine has ended
        RILLE_CO_CHECK(co_await note_machine(lease, *made, false));
        made = ended_already(lease, made->id);
      }
      if (token.cancelled()) co_return token.reason();
      if (!is_definitive(made.error())) {
        unanswered = true;
        if (attempt >= create_attempts_max) co_return made.error();  // release() ends a machine that exists
        RILLE_CO_CHECK(co_await pause(std::min<std::int64_t>(500LL << attempt, 10'000), token));
        continue;
      }
      if (unanswered && !ended) {
        // The refusal covers only this send: an earlier send's machine must be found or proven absent.
        RILLE_CO_TRY(const bool found, co_await find_machine(renting, true));
        if (found) co_return co_await adopt(renting);
      }
      refusal = made.error();
      if (!ended) {
        renting.refused.add(lease.request.offer, *refusal);
        recent_->add(lease.request.offer, *refusal, now_us());
        attempt = 0;
      }
      tell_refused(renting, *refusal);
      if (ended && attempt >= create_attempts_max) co_return *refusal;
    } else if (attempt >= create_attempts_max) {
      co_return *refusal;
    }
    unanswered = false;
    RILLE_CO_CHECK(co_await plan_next(renting, std::move(*refusal)));
  }
}

// Marks the lease's row as released: no machine was created, and none will be.
Async<> Manager::give_up(Renting& renting, Error why) {
  Lease& lease = *renting.lease;
  lease.state = "released";
  lease.released_us = now_us();
  if (lease.error.empty()) lease.error = why.message;
  RILLE_CO_CHECK(co_await save(renting.lease, renting.request.fence));
  co_return why;
}

// Waits until the provider can attach the volume that it has made. Fails if it never will; a release then deletes it.
Async<> Manager::await_volume(Renting& renting) {
  Lease& lease = *renting.lease;
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
  const std::int64_t until_us = now_us() + volume_ready_us;
  while (lease.machine->state != MachineState::live) {
    const bool ends = lease.machine->state == MachineState::terminating;
    if (ends || now_us() >= until_us) co_return never_ready(lease);
    RILLE_CO_CHECK(co_await pause(2'000, renting.token));
    Result<Machine> now = co_await provider->describe(lease.machine->id, renting.token);
    if (renting.token.cancelled()) co_return renting.token.reason();
    if (!now && !now.error().retryable) co_return now.error();
    if (!now || now->state == MachineState::gone) continue;  // it may not be visible yet
    lease.machine->state = now->state;
    if (const std::string problem = now->details.text("problem"); !problem.empty())
      lease.machine->details.set("problem", problem);
  }
  co_return success();
}

// The provider has created a machine. The machine becomes the lease's machine, unless the row has changed meanwhile.
Async<> Manager::adopt(Renting& renting) {
  Lease& lease = *renting.lease;
  if (renting.request.volume) RILLE_CO_CHECK(co_await await_volume(renting));
  lease.state = "live";
  lease.machine_id = lease.machine->id;
  lease.live_us = now_us();
  lease.replacing.clear();
  lease.detached = lease.detached || is_kept(lease);
  if (Result<provider::Provider*> provider = registry_.find(lease.provider))
    search_->proofs.of(loop_.clock(), lease.id, absence_proven_us(lease, (*provider)->traits()));
  if (Result<> saved = co_await save(renting.lease, renting.request.fence); !saved) {
    // If another process releases the lease, it may have listed the machines before this machine was visible, so end
    // the machine here. If another process runs the run now, do not: that process will use the machine.
    if (is_moved(saved.error()))
      if (auto gone = co_await end_machine(renting.lease); !gone)
        co_return std::move(saved).error().with_cause(gone.error());
    co_return saved;
  }
  renting.event("live", lease.to_value(lease.live_us));
  co_return success();
}

// Looks for the machine of a create call whose answer is unknown, and assigns it to the lease. A single empty list does
// not prove that the machine does not exist: with until_proof, repeats until a created machine would be shown.
Async<bool> Manager::find_machine(Renting& renting, bool until_proof) {
  Lease& lease = *renting.lease;
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
  const Proof proof = search_->proofs.of(loop_.clock(), lease.id, absence_proven_us(lease, provider->traits()));
  std::set<std::string> noted;
  for (bool ours = false;; ours = true) {
    const bool proven = proof.holds(loop_.clock());  // checked before the query, so that the query's list is a proof
    RILLE_CO_TRY(std::vector<Machine> machines,
                 co_await machines_of(provider, lease.request.offer.region, lease.tag, renting.token));
    std::erase_if(machines, [&](const Machine& m) { return m.tag != lease.tag; });
    for (const Machine& m : machines)
      if (has_ended(m) && noted.insert(m.id).second) RILLE_CO_CHECK(co_await note_machine(lease, m, false));
    std::erase_if(machines, has_ended);
    if (!machines.empty()) {
      std::sort(machines.begin(), machines.end(), [](const Machine& a, const Machine& b) { return a.id < b.id; });
      // Further machines with this tag are ended now, or at the latest with the lease, whose release searches by tag.
      for (std::size_t i = 1; i < machines.size(); ++i) {
        RILLE_CO_CHECK(co_await note_machine(lease, machines[i], false));
        (void)co_await provider->terminate(machines[i].id, {});
      }
      lease.machine = std::move(machines.front());
      co_return true;
    }
    if (!ours) RILLE_CO_CHECK(co_await check_owner(journal_.reader(), provider, renting.lease, renting.token));
    if (!until_proof || proven) co_return false;
    RILLE_CO_CHECK(co_await pause(2'000, renting.token));
  }
}

}  // namespace rille::lease
