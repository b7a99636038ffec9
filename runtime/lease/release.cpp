// The end of a lease: its machines, with the provider's last word, then its row.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/base/time.hpp"
#include "runtime/base/units.hpp"
#include "runtime/lease/rows.hpp"
#include "runtime/lease/tag.hpp"
#include "runtime/provider/left_over.hpp"
#include "runtime/store/audit.hpp"

namespace rille::lease {

namespace {

constexpr int end_attempts_max = 5;            // in a row, that fail or leave the machine running
constexpr std::int64_t shutdown_ms = 600'000;  // of a machine that says that it is ending
constexpr int moves_max = 8;                   // of a row by others, during one release
constexpr int free_attempts_max = 3;           // to remove what costs nothing
constexpr std::int64_t free_pause_ms = 2'000;

using provider::Machine;
using provider::MachineState;

Error still_there() {
  return make_error(ErrorKind::state, "the provider accepted the release, but the machine is still there");
}

}  // namespace

// Ends the machine of the lease and every other that bears its tag, and waits for the provider's word. That is `gone`
// for a machine that the provider still knows. A machine that it does not know, and an empty list, say nothing while
// what was made may not be visible yet; a terminate that was "successful" then is sent again.
Async<std::string> Manager::end_machine(Lease lease) {
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease.provider));
  const std::int64_t proof_us = absence_proven_us(lease, provider->traits());
  std::set<std::string> targets, costless;
  if (!lease.machine_id.empty()) targets.insert(lease.machine_id);
  std::int64_t shutdown_until_us = 0, accepted_us = 0;
  const std::int64_t lag_us = provider->traits().visibility_lag_ms * 1000;
  for (int failures = 0;;) {
    const std::int64_t asked_us = now_us();
    std::optional<Error> trouble;
    // What is shown may be older than what was accepted.
    auto stale = [&] { return accepted_us && asked_us < accepted_us + lag_us; };
    bool ending = false, fresh = false, word = !targets.empty();
    for (const std::string& id : targets) {
      Result<> accepted = co_await provider->terminate(id, {});
      Result<Machine> machine = co_await provider->describe(id, {});
      if (accepted && !accepted_us) accepted_us = now_us();
      if (!accepted || !machine) trouble = !accepted ? accepted.error() : machine.error();
      if (!machine) continue;
      word = word && machine->state == MachineState::gone && machine->tag == lease.tag;
      bool there = machine->state != MachineState::gone;
      if (machine->state == MachineState::terminating || (there && stale())) ending = true;
      else if (machine->state != MachineState::gone && !trouble) trouble = still_there();
    }
    Result<std::vector<Machine>> listed =
        co_await machines_of(provider, lease.request.offer.region, lease.tag, {});
    if (!listed) trouble = listed.error();
    for (const Machine& m : listed ? *listed : std::vector<Machine>()) {
      if (m.tag != lease.tag || m.state == MachineState::gone) continue;
      if (provider::is_free_left_over(m)) {
        costless.insert(m.id);
        continue;
      }
      // Also what is ending already, if nobody here has asked for it: a disk that outlived its machine does not go by
      // itself.
      if (targets.insert(m.id).second) fresh = true;
      else if (m.state == MachineState::terminating || stale()) ending = true;
      else if (!trouble) trouble = still_there();
    }
    bool absent = !trouble && !ending && !fresh;
    if (absent && (word || asked_us >= proof_us)) {
      // What costs nothing is tried for a moment, for its machine may still hold on to it; what stays is the reaper's.
      int attempts = 0;
      while (!costless.empty()) {
        const Result<> removed = co_await provider->terminate(*costless.begin(), {});
        if (removed || ++attempts >= free_attempts_max) costless.erase(costless.begin());
        else RILLE_CO_CHECK(co_await pause(free_pause_ms));
      }
      co_return targets.empty() ? std::string() : *targets.begin();
    }
    if (!trouble) failures = 0;  // a machine that takes long is asked about often
    else if (++failures >= end_attempts_max) co_return *trouble;
    if (ending && !shutdown_until_us) shutdown_until_us = now_us() + shutdown_ms * 1000;
    if (ending && now_us() >= shutdown_until_us)
      co_return make_error(ErrorKind::timeout, fmt::format("the provider has been ending it for longer than {}",
                                                           format_duration_ms(shutdown_ms)));
    std::int64_t ms = trouble ? std::min<std::int64_t>(100LL << failures, 5'000) : fresh ? 0 : 2'000;
    if (ms) RILLE_CO_CHECK(co_await pause(ms));
  }
}

void Manager::tell(const Event& event, const char* what, const Lease& lease) {
  Value data = lease.to_value(now_us());
  if (event) return event(what, std::move(data));
  auto text = std::make_shared<std::string>(data.set("event", what).to_json());
  journal_.enqueue([text, run = lease.run, what, at = now_us()](store::Db& db) {
    return store::append_event(db, run, at, what, *text);
  });
}

Async<> Manager::release(std::string id, Event event, store::Fence fence) {
  for (int moves = 0;; ++moves) {
    RILLE_CO_TRY(std::optional<Lease> found, find_to_end(id));
    if (!found)
      co_return make_error(ErrorKind::invalid, fmt::format("there is no lease '{}'", id),
                           "list them with `rille leases`");
    if (found->state == "released" && found->replacing.empty()) co_return success();
    found->replacing.clear();  // it was about to be given another machine: no more
    if (found->state == "released") {
      Result<> saved = co_await save(*found, fence);
      if (saved || !is_moved(saved.error()) || moves >= moves_max) co_return saved;
      continue;
    }
    Result<> ended = co_await end_lease(std::move(*found), event, fence);
    if (ended || !is_moved(ended.error()) || moves >= moves_max) co_return ended;
  }
}

// A live machine ends without a look at its request: its place is in the ledger, too. All else is read whole, since it
// may be written whole.
Result<std::optional<Lease>> Manager::find_to_end(const std::string& id) const {
  RILLE_TRY(std::vector<Lease> rows, read_leases(journal_.reader(), "WHERE id=?", {id}, Parts::brief));
  if (rows.empty()) return std::optional<Lease>();
  Lease& l = rows.front();
  const auto is_its = [&l](const Tenure& t) { return t.generation == l.generation && t.machine_id == l.machine_id; };
  const auto its = std::find_if(l.tenures.begin(), l.tenures.end(), is_its);
  if (l.state != "live" || its == l.tenures.end()) return find(id);
  l.request.offer.region = its->region;
  l.request.offer.billing = its->billing;
  return std::optional<Lease>(std::move(l));
}

Async<> Manager::end_idle(std::string id, std::int64_t generation, Event event, store::Fence fence) {
  RILLE_CO_TRY(std::optional<Lease> found, find(id));
  if (!found || found->generation != generation) co_return success();
  // Called again after a failure, it goes on with what that has left.
  const bool again = found->state == "releasing" && !found->error.empty();
  if (found->state != "live" && !again) co_return success();
  if (!again && replaces(*found) && !found->detached) found->replacing = "it was idle";
  Result<> ended = co_await end_lease(std::move(*found), std::move(event), std::move(fence));
  if (!ended && is_moved(ended.error())) co_return success();
  co_return ended;
}

Error Manager::release_failed(const Lease& lease) {
  Error e = make_error(
      ErrorKind::state,
      fmt::format("lease '{}' ({}) could not be released: {}", lease.name, lease.machine_id,
                  lease.error.empty() ? "the attempt was interrupted" : lease.error),
      fmt::format("it may still cost {} per hour; try again with `rille release {}`",
                  format_dollars(lease.price_micros_per_hour), lease.id));
  e.resource = lease.id;
  e.provider = lease.provider;
  return e;
}

// As the row was read: one that has moved since is left to the caller, with the error that says so.
Async<> Manager::end_lease(Lease lease, Event event, store::Fence fence) {
  std::optional<Error> unwritten;
  if (lease.state == "intent") {  // nothing has left for it: the row is all there is
    lease.state = "released";
    lease.released_us = now_us();
    RILLE_CO_CHECK(co_await save(lease, fence));
    tell(event, "released", lease);
    co_return success();
  }
  if (lease.state != "releasing") {
    lease.state = "releasing";
    if (Result<> saved = co_await save(lease, fence); !saved) {
      if (is_lost(saved.error())) co_return saved;
      unwritten = saved.error();  // the machine costs money, whatever the disk says
    }
  }
  Result<std::string> gone = co_await end_machine(lease);
  if (gone && !gone->empty() && lease.machine_id.empty()) {
    lease.machine_id = *gone;
    lease.live_us = lease.created_us;  // since when is not known: at the earliest
  }
  if (!gone) {
    lease.error = gone.error().message;
    if (Result<> saved = co_await save(lease, fence); !saved) unwritten = saved.error();
    Error e = release_failed(lease);
    e.cause = std::make_shared<const Error>(unwritten ? *unwritten : gone.error());
    co_return e;
  }
  lease.state = "released";
  lease.error.clear();
  lease.released_us = now_us();
  if (Result<> saved = co_await save(lease, fence); !saved) {
    if (is_lost(saved.error())) co_return saved;
    Error e = saved.error();
    e.message = fmt::format("the machine of lease '{}' has ended, but that could not be recorded: {}", lease.name,
                            e.message);
    e.hint = "free the disk, then `rille gc`: it asks the provider again and corrects the record";
    e.resource = lease.id;
    co_return e;
  }
  tell(event, "released", lease);
  co_return success();
}

// By its id alone: others may bear the same tag by right.
Async<> Manager::end_one(std::string machine, std::string provider_name) {
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(provider_name));
  for (int attempt = 1;; ++attempt) {
    Result<> accepted = co_await provider->terminate(machine, {});
    Result<Machine> now = co_await provider->describe(machine, {});
    if (accepted && now && (now->state == MachineState::gone || now->state == MachineState::terminating))
      co_return success();
    if (attempt >= end_attempts_max)
      co_return !accepted ? accepted.error() : !now ? now.error() : still_there();
    RILLE_CO_CHECK(co_await pause(std::min<std::int64_t>(100LL << attempt, 5'000)));
  }
}

}  // namespace rille::lease
