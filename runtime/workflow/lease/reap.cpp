// Ends leases that no run will end, and machines that no row accounts for.
#include <algorithm>
#include <map>

#include "runtime/core/base/run_state.hpp"
#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/lease/owner.hpp"
#include "runtime/workflow/lease/reaper.hpp"
#include "runtime/workflow/lease/rows.hpp"
#include "runtime/workflow/lease/tag.hpp"
#include "runtime/workflow/lease/volumes.hpp"
#include "runtime/workflow/provider/left_over.hpp"

namespace rille::lease {

namespace {

using provider::Machine;
using provider::MachineState;

bool over(const std::string& run_state) { return run_has_ended(run_state) || run_state == "cleanup"; }

// Whether the run is halted until the user resumes or cancels it.
bool halted(const std::string& run_state) { return run_state == "diverged" || run_state == "suspended"; }

// For a leftover that costs nothing: whether no active lease, of this home or another, needs it.
bool is_needed_no_more(const Machine& machine, const std::optional<Lease>& row, const std::optional<Tag>& tag,
                       std::int64_t now_us) {
  if (!tag) return false;
  const Account account = account_of(row, machine, *tag);
  const bool expired = tag->expires_us != 0 && now_us > tag->expires_us;
  return account == Account::settled || account == Account::older || (account == Account::unknown && expired);
}

}  // namespace

bool is_found_again(const Survey::Shown& one) {
  if (!one.row || !is_kept(*one.row)) return false;
  const Lease& row = *one.row;
  const bool had = std::any_of(row.tenures.begin(), row.tenures.end(),
                               [&one](const Tenure& t) { return t.machine_id == one.machine.id; });
  const bool closed = one.account == Account::settled && row.machine_id == one.machine.id && !row.error.empty();
  return had && (closed || one.account == Account::older);
}

Reaper::Reaper(Manager& leases, Loop& loop, store::Journal& journal, provider::Registry& registry, std::string install)
    : leases_(leases), loop_(loop), journal_(journal), registry_(registry), install_(std::move(install)) {}

Async<ReapReport> Reaper::reap(ReapRequest request) {
  ReapReport report;
  RILLE_CO_CHECK(co_await reap_rows(request, report));
  if (!request.only_due) RILLE_CO_CHECK(co_await reap_machines(request, report));
  co_return report;
}

Result<std::int64_t> Reaper::ends_us(const Lease& lease) const {
  ReapRequest request;
  request.alive = [](const std::string&) { return false; };
  RILLE_TRY(std::optional<Held> held, standing(lease, request));
  return held && held->until_us ? held->until_us : lease.expires_us;
}

namespace {

// Why `rille watch` does not resume an interrupted run, as it has recorded in the journal; "": no reason is recorded.
Result<std::string> given_up(store::Db& journal, const std::string& run) {
  std::string why;
  RILLE_CHECK(journal.query("SELECT why FROM watched WHERE run=? AND why NOT LIKE 'handed over %'", {run},
                            [&](const store::Row& row) { why = row.text(0); }));
  return why;
}

}  // namespace

// How long the reaper leaves a lease alone, and why; until_us 0: the lease is due. nullopt: the run's process handles
// the lease.
Result<std::optional<Held>> Reaper::standing(const Lease& lease, const ReapRequest& request) const {
  std::string state;
  std::int64_t since_us = 0;
  RILLE_CHECK(
      journal_.reader().query("SELECT state,updated_us FROM runs WHERE id=?", {lease.run}, [&](const store::Row& row) {
        state = row.text(0);
        since_us = row.integer(1);
      }));
  const bool expired = now_us() >= lease.expires_us;
  if (request.alive(lease.run) && (request.in_background || !expired)) return std::optional<Held>();
  Held held;
  held.lease = lease;
  held.until_us = lease.expires_us;
  if (is_kept(lease) && lease.detached) {
    held.why = "kept";
    if (lease.state == "releasing") held.until_us = 0;
    return std::optional<Held>(std::move(held));
  }
  if (lease.detached) {
    held.why = "detached";
  } else if (halted(state)) {
    held.why = "its run is " + state;
    held.until_us = std::min(held.until_us, since_us + lease.request.hold_ms * 1000);
  } else {
    // A process that runs a run with leases updates the run's row each minute, so since_us tells when it was alive.
    RILLE_TRY(const std::string why, given_up(journal_.reader(), lease.run));
    held.why = why.empty() ? "its run was interrupted and can be resumed" : "its run was interrupted, and " + why;
    const std::int64_t alive_us = std::max({since_us, lease.created_us, lease.live_us});
    held.until_us = std::min(held.until_us, alive_us + lease.request.hold_ms * 1000);
  }
  bool due = now_us() >= held.until_us || lease.state == "releasing" || request.now.contains(lease.run) ||
             (over(state) && !lease.detached);
  if (due) held.until_us = 0;
  return std::optional<Held>(std::move(held));
}

// Releases the leases that are due. All providers and regions are handled concurrently, so that a region that does not
// answer delays only the leases in that region.
Async<> Reaper::reap_rows(const ReapRequest& request, ReapReport& report) {
  RILLE_CO_TRY(std::vector<Lease> leases, leases_.all(false));
  // Volumes after the machines that have them.
  std::stable_partition(leases.begin(), leases.end(), [](const Lease& l) { return !is_volume(l); });
  std::map<std::pair<std::string, std::string>, std::vector<Lease>> places;
  for (Lease& lease : leases) places[{lease.provider, lease.request.offer.region}].push_back(std::move(lease));
  std::vector<Together<bool>> asked;
  for (auto& [place, rows] : places)
    asked.push_back({place.first, [this, &there = rows, &request, &report](CancelToken) {
                       return reap_place(std::move(there), request, report);
                     }});
  const auto done = co_await together(loop_, std::move(asked), 0, {});
  for (const Result<bool>& one : done) RILLE_CO_CHECK(one);
  co_return success();
}

Async<bool> Reaper::reap_place(std::vector<Lease> leases, const ReapRequest& request, ReapReport& report) {
  for (Lease& lease : leases) {
    RILLE_CO_TRY(std::optional<Held> held, standing(lease, request));
    if (!held) continue;
    bool vanished = false;
    if (held->until_us && lease.has_machine() && !request.only_due) {
      Result<Machine> machine = co_await leases_.describe(lease, {});
      vanished = machine && machine->state == MachineState::gone;
      if (!machine && is_other_account(machine.error())) report.errors.push_back(machine.error());
    }
    if (held->until_us && !vanished) {
      if (!is_kept(lease)) report.held.push_back(std::move(*held));
      continue;
    }
    if (vanished && is_kept(lease)) {
      RILLE_CO_CHECK(co_await close_vanished(std::move(lease), report));
      continue;
    }
    // The machine is gone: if the run is resumed, the lease gets another machine.
    if (vanished && !lease.detached && Manager::replaces(lease)) lease.replacing = "its machine is gone";
    Shared ending = std::make_shared<Lease>(lease);
    Result<> r = co_await leases_.end_lease(std::move(ending), nullptr, {});
    if (!r && is_moved(r.error())) continue;  // the run was resumed, or another process ends the lease
    if (!r) lease.error = r.error().message;
    (r ? report.released : report.failed).push_back(std::move(lease));
  }
  co_return true;
}

// The provider no longer has a kept volume. Only the row changes: nothing but a word deletes a volume, and the provider
// may be wrong. The error in the row says that no word was given.
Async<> Reaper::close_vanished(Lease volume, ReapReport& report) {
  const Shared row = std::make_shared<Lease>(std::move(volume));
  row->state = "released";
  row->error = "the provider no longer has it";
  row->released_us = now_us();
  const Result<> saved = co_await leases_.save(row, {});
  if (!saved && is_moved(saved.error())) co_return success();
  if (!saved) row->error = saved.error().message;
  else leases_.tell(nullptr, row->run, "released", row->to_value(now_us()));
  (saved ? report.released : report.failed).push_back(std::move(*row));
  co_return success();
}

// Ends machines that no row accounts for. All providers are asked concurrently, and each answer is handled at once.
Async<> Reaper::reap_machines(const ReapRequest& request, ReapReport& report) {
  std::vector<Together<bool>> asked;
  for (provider::Provider* p : registry_.all())
    asked.push_back({p->name(), [this, p, &request, &report](CancelToken) { return reap_at(p, request, report); }});
  const auto done = co_await together(loop_, std::move(asked), 0, {});
  for (const Result<bool>& one : done) RILLE_CO_CHECK(one);
  co_return success();
}

Async<bool> Reaper::reap_at(provider::Provider* provider, const ReapRequest& request, ReapReport& report) {
  RILLE_CO_TRY(Survey survey, co_await shown_by(provider, "", nullptr, {}));
  for (Error& e : survey.errors) report.errors.push_back(std::move(e));
  for (Survey::Shown& one : survey.machines) RILLE_CO_CHECK(co_await end_stray(std::move(one), request, report));
  co_return true;
}

Async<> Reaper::end_stray(Survey::Shown shown, const ReapRequest& request, ReapReport& report) {
  const Machine& machine = shown.machine;
  if (provider::is_free_left_over(machine)) {
    if (!is_needed_no_more(machine, shown.row, read_tag(install_, machine.tag), now_us())) co_return success();
    RILLE_CO_TRY(provider::Provider * from, registry_.find(shown.provider));
    (void)co_await from->terminate(machine.id, {});  // if this fails, the next reap tries again
    co_return success();
  }
  if (shown.account == Account::own) co_return success();
  if (is_found_again(shown) && machine.id != request.unknown) {
    Lease kept = std::move(*shown.row);
    kept.machine_id = machine.id;
    report.unknown.push_back(std::move(kept));
    co_return success();
  }
  if (shown.account == Account::settled)
    co_return co_await end_settled(std::move(*shown.row), std::move(shown.machine), report);
  Lease stray;
  stray.provider = shown.provider;
  stray.machine_id = machine.id;
  stray.tag = machine.tag;
  stray.live_us = machine.created_wall_us;
  stray.expires_us = shown.expires_us;
  if (!shown.row) {
    // The tag is of this installation, but the journal has no row: until the expiry in the tag has passed, the machine
    // may belong to another home.
    bool expired = stray.expires_us != 0 && now_us() > stray.expires_us;
    if (!expired && machine.id != request.unknown) {
      report.unknown.push_back(std::move(stray));
      co_return success();
    }
  } else {
    const Lease& row = *shown.row;
    if (shown.account == Account::second && request.in_background && request.alive(row.run)) co_return success();
    stray.id = row.id;
    stray.run = row.run;
    stray.name = row.name;
    stray.generation = shown.generation;
    stray.request.offer = row.request.offer;
    stray.request.disk_bytes = row.request.disk_bytes;
    stray.price_micros_per_hour = row.price_micros_per_hour;
    stray.disk_micros_per_hour = row.disk_micros_per_hour;
    report.revived.push_back(stray);
  }
  Result<> r = co_await leases_.end_one(machine.id, shown.provider);
  if (r && shown.row) {
    auto ended = std::make_shared<Lease>(stray);
    store::Journal::Write count = [ended, at = now_us()](store::Db& db) { return record_stray(db, *ended, at); };
    (void)co_await journal_.commit(std::move(count));  // a failure to record the cost must not stop the reaper
  }
  if (!r) stray.error = r.error().message;
  (r ? report.released : report.failed).push_back(std::move(stray));
  co_return success();
}

// The lease is marked as released, but its machine is alive. The row is opened again, so that the machine is counted
// and shown until it has really ended.
Async<> Reaper::end_settled(Lease settled, Machine machine, ReapReport& report) {
  const Shared row = std::make_shared<Lease>(std::move(settled));
  row->state = "releasing";
  row->released_us = 0;
  row->machine_id = machine.id;
  if (!row->live_us) row->live_us = machine.created_wall_us ? machine.created_wall_us : row->created_us;
  row->error = "the provider has the machine, although it was released";
  if (Result<> saved = co_await leases_.save(row, {}); !saved && is_lost(saved.error())) co_return success();
  report.revived.push_back(*row);
  // Do not call release(), which would cancel a pending replacement of the machine.
  Result<> r = success();
  store::Fence nobody;
  Shared opened = std::make_shared<Lease>(*row);
  if (row->seen.state == "releasing") r = co_await leases_.end_lease(std::move(opened), nullptr, std::move(nobody));
  if (!r && is_moved(r.error())) r = success();  // another process has changed the row, and ends the machine
  // If the journal could not be written, the row still says `released`; end the machine anyway.
  if (r && row->seen.state == "released")
    if (Result<std::string> ended = co_await leases_.end_machine(row); !ended) r = ended.error();
  if (!r) row->error = r.error().message;
  (r ? report.released : report.failed).push_back(std::move(*row));
  co_return success();
}

}  // namespace rille::lease
