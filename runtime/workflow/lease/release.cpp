// The end of a lease: terminates the lease's machines, waits for the provider's confirmation, then updates the row.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/core/base/time.hpp"
#include "runtime/core/store/audit.hpp"
#include "runtime/workflow/lease/ending.hpp"
#include "runtime/workflow/lease/owner.hpp"
#include "runtime/workflow/lease/refused.hpp"
#include "runtime/workflow/lease/rows.hpp"
#include "runtime/workflow/lease/tag.hpp"
#include "runtime/workflow/lease/volumes.hpp"

namespace rille::lease {

namespace {

constexpr int end_attempts_max = 5;            // give up after so many failed attempts to end the machine in a row
constexpr std::int64_t shutdown_ms = 600'000;  // longest wait for a machine in state `terminating`
constexpr int moves_max = 8;                   // give up after so many changes of the row by other processes
constexpr int free_attempts_max = 3;           // attempts to remove a leftover that costs nothing
constexpr std::int64_t free_pause_ms = 2'000;

using provider::Machine;
using provider::MachineState;

Error still_there() {
  return make_error(ErrorKind::state, "the provider accepted the release, but the machine is still there",
                    "it may still cost: run `rille release` for its lease again, or end it in the provider's console");
}

}  // namespace

Async<> Manager::note_machine(const Lease& lease, const Machine& machine, bool is_its) {
  const std::int64_t now = now_us();
  auto seen = std::make_shared<Lease>(lease);
  seen->machine_id = machine.id;
  seen->machine = machine;
  std::int64_t skew_us = 0;
  if (Result<provider::Provider*> provider = registry_.find(lease.provider)) skew_us = provider::skew_of(*provider);
  const std::int64_t made_us = machine.created_wall_us ? machine.created_wall_us - skew_us : 0;
  seen->live_us = std::clamp(made_us, std::min(lease.created_us, now), now);
  const std::int64_t told_us = provider::ended_at_us(machine);
  const std::int64_t ended_us = told_us ? std::clamp(told_us - skew_us, seen->live_us, now) : now;
  store::Journal::Write write = [seen, is_its, ended_us](store::Db& db) -> Result<> {
    if (!is_its) return record_stray(db, *seen, ended_us);
    RILLE_CHECK(
        db.run("UPDATE leases SET machine_id=?, live_us=? WHERE id=? AND generation=? AND machine_id IS NULL "
               "AND state<>'released'",
               {seen->machine_id, seen->live_us, seen->id, seen->generation}));
    return db.changes() == 1 ? record_tenure(db, *seen) : success();
  };
  (void)co_await journal_.commit(std::move(write));  // a failure to write must not keep the machine from being ended
  if (hooks_.written) RILLE_CO_CHECK(co_await hooks_.written());
  co_return success();
}

// A release in progress, and what its queries have shown.
struct Manager::Releasing {
  const Lease& lease;
  provider::Provider* provider;
  End end;
  std::string own;                             // id of the lease's machine; "": not known yet
  std::set<std::string> targets = {};          // ids of the machines to terminate
  std::set<std::string> costless = {};         // ids of leftovers that cost nothing
  std::set<std::string> noted = {};            // ids of the machines recorded in the ledger
  bool ours = false;                           // the API keys in use can see the lease's machine
  std::int64_t accepted_us = 0, asked_us = 0;  // when a terminate was first accepted; when the last query was sent
  // What one pass of the release's loop found. trouble: an error. ending: a target is still ending. fresh: a new target
  // was found. word: the provider reports `gone` for each target.
  std::optional<Error> trouble = {};
  bool ending = false, fresh = false, word = false;

  Releasing(const Lease& l, provider::Provider* p) : lease(l), provider(p), end(l, *p), own(l.machine_id) {
    if (!own.empty()) targets.insert(own);
  }
  bool is_its(const std::string& id) const { return own.empty() || id == own; }
  // Whether the last query's answer may be older than the accepted terminate.
  bool stale() const { return accepted_us && asked_us < accepted_us + provider->traits().visibility_lag_ms * 1000; }
  bool nothing_there() const { return !trouble && !ending && !fresh; }
  void look(std::int64_t now_us) {
    asked_us = now_us;
    trouble.reset();
    ending = fresh = false;
    word = !targets.empty();
    end.look();
  }
};

Async<> Manager::terminate_targets(Releasing& r) {
  for (const std::string& id : r.targets) {
    Result<> accepted = co_await r.provider->terminate(id, {});
    Result<Machine> machine = co_await r.provider->describe(id, {});
    if (accepted && !r.accepted_us) r.accepted_us = now_us();
    if (!accepted || !machine) r.trouble = !accepted ? accepted.error() : machine.error();
    if (!machine) continue;
    r.end.saw(*machine, r.is_its(id));
    const bool there = machine->state != MachineState::gone;
    r.word = r.word && !there && machine->tag == r.lease.tag;
    r.ours = r.ours || machine->tag == r.lease.tag;
    if (machine->state == MachineState::terminating || (there && r.stale())) r.ending = true;
    else if (there && !r.trouble) r.trouble = still_there();
  }
  co_return success();
}

// Queries the provider for machines with the lease's tag and adds them to the targets.
Async<> Manager::look_for_tagged(Releasing& r, std::string* met) {
  auto listed = co_await machines_of(r.provider, r.lease.request.offer.region, r.lease.tag, {});
  if (!listed) r.trouble = listed.error();
  for (const Machine& m : listed ? *listed : std::vector<Machine>()) {
    if (m.tag != r.lease.tag) continue;
    if (m.id != r.own && !provider::is_left_over(m) && !provider::is_free_left_over(m) && !r.targets.contains(m.id) &&
        r.noted.insert(m.id).second) {
      RILLE_CO_CHECK(co_await note_machine(r.lease, m, r.is_its(m.id)));
      if (r.own.empty()) r.own = m.id;
      if (met) *met = r.own;
    }
    r.end.saw(m, r.is_its(m.id));
    if (m.state == MachineState::gone) continue;
    r.ours = true;
    if (provider::is_free_left_over(m)) {
      r.costless.insert(m.id);
      continue;
    }
    // A machine that is already ending, but not by our request, becomes a target too: its disk may outlive it, and is
    // only removed by our request.
    if (r.targets.insert(m.id).second) r.fresh = true;
    else if (m.state == MachineState::terminating || r.stale()) r.ending = true;
    else if (!r.trouble) r.trouble = still_there();
  }
  co_return success();
}

// Removes leftovers that cost nothing. Retries briefly, because the machine may still use them; the reaper does the
// rest.
Async<> Manager::remove_costless(Releasing& r) {
  int attempts = 0;
  while (!r.costless.empty()) {
    const Result<> removed = co_await r.provider->terminate(*r.costless.begin(), {});
    if (removed || ++attempts >= free_attempts_max) r.costless.erase(r.costless.begin());
    else RILLE_CO_CHECK(co_await pause(free_pause_ms));
  }
  co_return success();
}

// Ends the lease's machine and all others with its tag, and waits for the provider's confirmation: the state `gone` for
// a machine that the provider still knows. "Unknown machine" and an empty list prove nothing while a created machine
// may not be visible yet; then the terminate is sent again even if it succeeded. They also prove nothing if the API
// keys belong to another account, unless these keys have seen the machine before.
Async<std::string> Manager::end_machine(std::shared_ptr<const Lease> shared, std::string* met) {
  const Lease& lease = *shared;
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
  const Proof proof = search_->proofs.of(loop_.clock(), lease.id, absence_proven_us(lease, provider->traits()));
  Releasing r(lease, provider);
  std::int64_t shutdown_until_us = 0;
  for (int failures = 0;;) {
    const bool proven = proof.holds(loop_.clock());
    r.look(now_us());
    RILLE_CO_CHECK(co_await terminate_targets(r));
    RILLE_CO_CHECK(co_await look_for_tagged(r, met));
    if (r.nothing_there() && !r.word && !r.ours) {
      const Result<> checked = co_await check_owner(journal_.reader(), provider, shared, {});
      if (!checked && is_other_account(checked.error())) co_return checked.error();
      if (!checked) r.trouble = checked.error();
      r.ours = checked.ok();
    }
    r.end.looked(!r.trouble, now_us());
    if (r.nothing_there() && (r.word || proven)) {
      search_->proofs.forget(lease.id);
      search_->endings[lease.id] = r.end.found();
      RILLE_CO_CHECK(co_await remove_costless(r));
      co_return r.own.empty() && !r.targets.empty() ? *r.targets.begin() : r.own;
    }
    if (!r.trouble) failures = 0;  // only failures in a row count, because a slow machine is queried many times
    else if (++failures >= end_attempts_max) co_return *r.trouble;
    if (r.ending && !shutdown_until_us) shutdown_until_us = now_us() + shutdown_ms * 1000;
    if (r.ending && now_us() >= shutdown_until_us)
      co_return make_error(
          ErrorKind::timeout,
          fmt::format("the provider has been ending the machine for longer than {}", format_duration_ms(shutdown_ms)),
          "look at the machine in the provider's console; `rille release` for its lease asks again");
    std::int64_t ms = r.trouble ? std::min<std::int64_t>(100LL << failures, 5'000) : r.fresh ? 0 : 2'000;
    if (ms) RILLE_CO_CHECK(co_await pause(ms));
  }
}

void Manager::tell(const Event& event, const std::string& run, const char* what, Value data) {
  if (event) return event(what, std::move(data));
  auto text = std::make_shared<std::string>(data.set("event", what).to_json());
  journal_.enqueue(
      [text, run, what, at = now_us()](store::Db& db) { return store::append_event(db, run, at, what, *text); });
}

Async<> Manager::release(std::string id, Event event, store::Fence fence) {
  RILLE_CO_TRY(const Shared taken, co_await take_to_end(id, fence));
  if (taken) {
    Result<> ended = co_await settle(taken, nullptr, event, fence);
    if (ended || !is_moved(ended.error())) co_return ended;
  }
  for (int moves = 0;; ++moves) {
    RILLE_CO_TRY(const Shared found, known(id));
    if (!found)
      co_return make_error(ErrorKind::invalid, fmt::format("there is no lease '{}'", id),
                           "list them with `rille leases`");
    if (found->state == "released" && found->replacing.empty()) co_return success();
    found->replacing.clear();  // cancels a pending replacement
    Result<> ended;
    if (found->state == "released") ended = co_await save(found, fence);
    else ended = co_await end_lease(found, event, fence);
    if (ended || !is_moved(ended.error()) || moves >= moves_max) co_return ended;
  }
}

// The fast path for a live lease: reads the lease and marks it `releasing` in one transaction, so that it cannot change
// in between. The request is not read: the tenures, read afterwards, have its region and billing. Null: the lease is
// not live, or a volume, or a read or write failed; the caller then reads the lease and decides.
Async<Manager::Shared> Manager::take_to_end(std::string id, store::Fence fence) {
  const auto taken = std::make_shared<std::optional<Lease>>();
  store::Journal::Write write = [taken, id = std::move(id)](store::Db& db) -> Result<> {
    Lease& lease = taken->emplace();  // starts empty each time, because the journal may run this write twice
    RILLE_TRY(const bool found, read_brief(db, id, lease));
    RILLE_TRY(const bool volume, is_volume_row(db, lease.number));
    if (!found || lease.state != "live" || volume) {
      taken->reset();
      return {};
    }
    lease.state = "releasing";
    lease.replacing.clear();  // cancels a pending replacement
    return write_ending(db, lease);
  };
  const Result<> written = co_await journal_.commit(std::move(write), std::move(fence));
  if (!written || !*taken) co_return Shared();
  Lease& lease = **taken;
  lease.seen.state = lease.state;
  if (hooks_.written) RILLE_CO_CHECK(co_await hooks_.written());
  Result<std::vector<Tenure>> tenures = read_tenures(journal_.reader(), lease.number);
  if (!tenures) co_return Shared();
  lease.tenures = std::move(*tenures);
  const auto is_its = [&lease](const Tenure& t) {
    return t.generation == lease.generation && t.machine_id == lease.machine_id;
  };
  const auto its = std::find_if(lease.tenures.begin(), lease.tenures.end(), is_its);
  if (its == lease.tenures.end()) co_return Shared();
  lease.request.offer.region = its->region;
  lease.request.offer.billing = its->billing;
  co_return Shared(taken, &lease);
}

Async<> Manager::end_idle(std::string id, std::int64_t generation, Event event, store::Fence fence) {
  RILLE_CO_TRY(const Shared found, known(id));
  if (!found || found->generation != generation) co_return success();
  // If an earlier call failed, this call continues the release.
  const bool again = found->state == "releasing" && !found->error.empty();
  if (found->state != "live" && !again) co_return success();
  if (!again && replaces(*found) && !found->detached) found->replacing = "it was idle";
  Result<> ended = co_await end_lease(found, std::move(event), std::move(fence));
  if (!ended && is_moved(ended.error())) co_return success();
  co_return ended;
}

Error Manager::release_failed(const Lease& lease) {
  const Price price = lease.price();
  Error e = make_error(
      ErrorKind::state,
      fmt::format("lease '{}' ({}) could not be released: {}", lease.name, lease.machine_id,
                  lease.error.empty() ? "the attempt was interrupted" : lease.error),
      fmt::format("it may still cost {}; try again with `rille release {}`",
                  price.micros >= 0 ? price.shown() + " per hour" : "what its provider asks for it", lease.id));
  e.resource = lease.id;
  e.provider = lease.provider;
  return e;
}

// Ends a lease whose row the caller has read. If the row has changed since, fails with lease_moved. A volume ends only
// once its row says so, in a transaction that has found no user of it.
Async<> Manager::end_lease(Shared lease, Event event, store::Fence fence) {
  std::shared_ptr<const Error> unwritten;
  if (lease->state == "intent") {  // no create call was sent, so there is no machine: only the row changes
    lease->state = "released";
    lease->released_us = now_us();
    RILLE_CO_CHECK(co_await save(lease, fence));
    tell(event, lease->run, "released", lease->to_value(now_us()));
    co_return success();
  }
  if (lease->state != "releasing") {
    const bool volume = is_volume(*lease);
    lease->state = "releasing";
    if (Result<> saved = co_await save(lease, fence, volume); !saved) {
      if (is_lost(saved.error()) || volume) co_return saved;
      unwritten = std::make_shared<const Error>(saved.error());  // go on: the machine must end even if the disk is full
    }
  }
  co_return co_await settle(std::move(lease), std::move(unwritten), std::move(event), std::move(fence));
}

namespace {

Error not_ended(const Lease& lease, std::shared_ptr<const Error> unwritten, const Error& why) {
  Error e = Manager::release_failed(lease);
  // A retry does not help if the API keys belong to another account: the error says so.
  if (is_other_account(why)) e.kind = why.kind, e.code = why.code, e.hint = why.hint;
  e.cause = unwritten ? std::move(unwritten) : std::make_shared<const Error>(why);
  return e;
}

Error not_recorded(const Lease& lease, Error e) {
  e.message =
      fmt::format("the machine of lease '{}' has ended, but that could not be recorded: {}", lease.name, e.message);
  e.hint = "free some disk space, then run `rille gc`, which asks the provider again and corrects the record";
  e.resource = lease.id;
  return e;
}

}  // namespace

// Ends the machines of a lease in state `releasing`, then writes the row. unwritten: why the row could not be marked as
// `releasing`; null: it was.
Async<> Manager::settle(Shared lease, std::shared_ptr<const Error> unwritten, Event event, store::Fence fence) {
  std::string met;
  Result<std::string> gone = co_await end_machine(lease, &met);
  if (gone) met = *gone;
  if (!met.empty() && lease->machine_id.empty()) {
    lease->machine_id = met;
    lease->live_us = lease->created_us;  // when the machine became live is unknown: assume the earliest time
  }
  if (!gone) {
    lease->error = gone.error().message;
    const Result<> saved = co_await save(lease, fence);
    if (!saved) unwritten = std::make_shared<const Error>(saved.error());
    co_return not_ended(*lease, std::move(unwritten), gone.error());
  }
  (void)co_await follow_to_the_end(lease, fence);
  lease->state = "released";
  lease->error.clear();
  lease->released_us = now_us();
  const Result<> saved = co_await save(lease, fence);
  if (!saved) co_return is_lost(saved.error()) ? saved.error() : not_recorded(*lease, saved.error());
  tell(event, lease->run, "released", lease->to_value(now_us()));
  co_return success();
}

// Ends one machine by its id. The tag is not used, because other machines with this tag may be wanted.
Async<> Manager::end_one(std::string machine, std::string provider_name) {
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(provider_name));
  for (int attempt = 1;; ++attempt) {
    Result<> accepted = co_await provider->terminate(machine, {});
    Result<Machine> now = co_await provider->describe(machine, {});
    if (accepted && now && (now->state == MachineState::gone || now->state == MachineState::terminating))
      co_return success();
    if (attempt >= end_attempts_max) co_return !accepted ? accepted.error() : !now ? now.error() : still_there();
    RILLE_CO_CHECK(co_await pause(std::min<std::int64_t>(100LL << attempt, 5'000)));
  }
}

}  // namespace rille::lease
