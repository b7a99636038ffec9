// The end of leases: release, and the reaper that releases what nobody else will.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/base/time.hpp"
#include "runtime/base/units.hpp"
#include "runtime/lease/rows.hpp"
#include "runtime/lease/tag.hpp"

namespace rille::lease {

namespace {

constexpr int end_attempts_max = 5;            // that fail, or leave the machine running
constexpr std::int64_t shutdown_ms = 600'000;  // of a machine that says that it is ending
constexpr int moves_max = 8;                   // of a row by others, during one release

using provider::Machine;
using provider::MachineState;

bool over(const std::string& run_state) {
  return run_state == "done" || run_state == "failed" || run_state == "cancelled" || run_state == "cleanup";
}

// Stands still until a person decides; `running` without a runner (a crash) is resumed as it is.
bool halted(const std::string& run_state) { return run_state == "diverged" || run_state == "suspended"; }

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
  std::set<std::string> targets;
  if (!lease.machine_id.empty()) targets.insert(lease.machine_id);
  std::int64_t shutdown_until_us = 0;
  for (int failures = 0;;) {
    const std::int64_t asked_us = now_us();
    std::optional<Error> trouble;
    bool ending = false, fresh = false, word = !targets.empty();
    for (const std::string& id : targets) {
      Result<> accepted = co_await provider->terminate(id, {});
      Result<Machine> machine = co_await provider->describe(id, {});
      if (!accepted || !machine) trouble = !accepted ? accepted.error() : machine.error();
      if (!machine) continue;
      word = word && machine->state == MachineState::gone && machine->tag == lease.tag;
      if (machine->state == MachineState::terminating) ending = true;
      else if (machine->state != MachineState::gone && !trouble) trouble = still_there();
    }
    Result<std::vector<Machine>> listed = co_await provider->list(lease.tag, {});
    if (!listed) trouble = listed.error();
    for (const Machine& m : listed ? *listed : std::vector<Machine>()) {
      if (m.tag != lease.tag || m.state == MachineState::gone) continue;
      if (m.state == MachineState::terminating) ending = true;
      else if (targets.insert(m.id).second) fresh = true;
      else if (!trouble) trouble = still_there();
    }
    bool absent = !trouble && !ending && !fresh;
    if (absent && (word || asked_us >= proof_us)) co_return targets.empty() ? std::string() : *targets.begin();
    if (trouble && ++failures >= end_attempts_max) co_return *trouble;
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
    return db.run("INSERT INTO events(run,at_us,event,data) VALUES(?,?,?,?)", {run, at, std::string_view(what), *text});
  });
}

Async<> Manager::release(std::string id, Event event, store::Fence fence) {
  for (int moves = 0;; ++moves) {
    RILLE_CO_TRY(std::optional<Lease> found, find(id));
    if (!found)
      co_return make_error(ErrorKind::invalid, fmt::format("there is no lease '{}'", id),
                           "list them with `rille leases`");
    if (found->state == "released") co_return success();
    Result<> ended = co_await end_lease(std::move(*found), event, fence);
    if (ended || !is_moved(ended.error()) || moves >= moves_max) co_return ended;
  }
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
    Error e = make_error(
        ErrorKind::state,
        fmt::format("lease '{}' ({}) could not be released: {}", lease.name, lease.machine_id, lease.error),
        fmt::format("it may still cost {} per hour; try again with `rille release {}`",
                    format_dollars(lease.price_micros_per_hour), lease.id));
    e.resource = lease.id;
    e.provider = lease.provider;
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

Async<ReapReport> Manager::reap(ReapRequest request) {
  ReapReport report;
  RILLE_CO_CHECK(co_await reap_rows(request, report));
  if (!request.only_due) RILLE_CO_CHECK(co_await reap_machines(request, report));
  co_return report;
}

// Until when the row is left alone, and why; 0: it is due. Nothing: it is its runner's business.
Result<std::optional<Held>> Manager::standing(const Lease& lease, const ReapRequest& request) const {
  std::string state;
  std::int64_t since_us = 0;
  RILLE_CHECK(journal_.reader().query("SELECT state,updated_us FROM runs WHERE id=?", {lease.run},
                                      [&](const store::Row& row) {
                                        state = row.text(0);
                                        since_us = row.integer(1);
                                      }));
  const bool expired = now_us() >= lease.expires_us;
  if (request.alive(lease.run) && (request.in_background || !expired)) return std::optional<Held>();
  Held held;
  held.lease = lease;
  held.until_us = lease.expires_us;
  if (lease.detached) {
    held.why = "detached";
  } else if (halted(state)) {
    held.why = "its run is " + state;
    held.until_us = std::min(held.until_us, since_us + lease.request.hold_ms * 1000);
  } else {
    held.why = "its run was interrupted and can be resumed";
  }
  bool due = now_us() >= held.until_us || lease.state == "releasing" || lease.run == request.now ||
             (over(state) && !lease.detached);
  if (due) held.until_us = 0;
  return std::optional<Held>(std::move(held));
}

Async<> Manager::reap_rows(const ReapRequest& request, ReapReport& report) {
  RILLE_CO_TRY(std::vector<Lease> leases, all(false));
  for (Lease& lease : leases) {
    RILLE_CO_TRY(std::optional<Held> held, standing(lease, request));
    if (!held) continue;
    bool vanished = false;
    if (held->until_us && lease.state == "live" && !request.only_due) {
      Result<Machine> machine = co_await describe(lease, {});
      vanished = machine && machine->state == MachineState::gone;
    }
    if (held->until_us && !vanished) {
      report.held.push_back(std::move(*held));
      continue;
    }
    Result<> r = co_await end_lease(lease, nullptr, {});
    if (!r && is_moved(r.error())) continue;  // somebody has resumed the run, or ends the lease as well
    if (!r) lease.error = r.error().message;
    (r ? report.released : report.failed).push_back(std::move(lease));
  }
  co_return success();
}

// What the providers have that the rows do not account for.
Async<> Manager::reap_machines(const ReapRequest& request, ReapReport& report) {
  for (provider::Provider* p : registry_.all()) {
    Result<std::vector<Machine>> machines = co_await p->list(tag_prefix(install_), {});
    if (!machines) {
      Error e = machines.error();
      e.provider = p->name();
      report.errors.push_back(std::move(e));
      continue;
    }
    for (Machine& m : *machines)
      if (m.state != MachineState::gone) RILLE_CO_CHECK(co_await end_stray(std::move(m), p->name(), request, report));
  }
  co_return success();
}

Async<> Manager::end_stray(Machine machine, std::string provider, ReapRequest request, ReapReport& report) {
  std::optional<Tag> tag = read_tag(install_, machine.tag);
  std::optional<Lease> row;
  if (tag) {
    // Read after the list: the row is never older than what the list shows.
    RILLE_CO_TRY(row, find(tag->lease));
  }
  Lease stray;
  stray.provider = provider;
  stray.machine_id = machine.id;
  stray.tag = machine.tag;
  stray.live_us = machine.created_wall_us;
  stray.expires_us = tag ? tag->expires_us : 0;
  if (!row) {
    // Ours by its tag, in no journal: another home may own it until its own tag says that it has expired.
    if (stray.expires_us == 0 || now_us() <= stray.expires_us) {
      report.unknown.push_back(std::move(stray));
      co_return success();
    }
  } else {
    bool settled = row->tag == machine.tag && row->state == "released";
    bool second = row->tag == machine.tag && row->state == "live" && row->machine_id != machine.id;
    bool older = row->tag != machine.tag && tag->generation < row->generation;
    if (settled) {
      // The row is wrong. It is opened again, so that the machine is counted and shown until it has really ended.
      row->state = "releasing";
      row->released_us = 0;
      row->machine_id = machine.id;
      if (!row->live_us) row->live_us = machine.created_wall_us ? machine.created_wall_us : row->created_us;
      row->error = "the provider has the machine, although it was released";
      if (Result<> saved = co_await save(*row, {}); !saved && is_lost(saved.error())) co_return success();
      report.revived.push_back(*row);
      Result<> r = co_await release(row->id, nullptr);
      // A journal that cannot be written still says `released`: the machine ends all the same.
      if (r && row->seen.state == "released")
        if (Result<std::string> ended = co_await end_machine(*row); !ended) r = ended.error();
      if (!r) row->error = r.error().message;
      (r ? report.released : report.failed).push_back(std::move(*row));
      co_return success();
    }
    if (!second && !older) co_return success();  // the row's own
    if (second && request.in_background && request.alive(row->run)) co_return success();
    stray.id = row->id;
    stray.run = row->run;
    stray.name = row->name;
    report.revived.push_back(stray);
  }
  Result<> r = co_await end_one(machine.id, provider);
  if (!r) stray.error = r.error().message;
  (r ? report.released : report.failed).push_back(std::move(stray));
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
