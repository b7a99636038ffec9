// The last check of a run for machines: finds machines whose create call's answer was lost and that became visible
// after all other checks.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/lease/reaper.hpp"
#include "runtime/workflow/lease/rows.hpp"

namespace rille::lease {

namespace {

constexpr std::int64_t sweep_patience_ms = 15'000;  // a provider without an answer delays a run's end at most so long

// Whether a listed machine is known to be gone: the provider has confirmed its end, and the list may be older than the
// confirmation or show the machine's final state. The confirmation may be later than the end in the ledger.
bool is_old_news(const Survey::Shown& one, std::int64_t lag_ms, std::int64_t now_us) {
  if (!one.row) return false;
  const bool ends = one.machine.state == provider::MachineState::terminating;
  return std::any_of(one.row->tenures.begin(), one.row->tenures.end(), [&](const Tenure& t) {
    return t.machine_id == one.machine.id && t.to_us &&
           (ends || now_us < std::max(t.to_us, one.row->released_us) + lag_ms * 1000);
  });
}

}  // namespace

// The places (provider, region) to ask for machines of the run: of its machines, and of this process's create calls. A
// lease that an earlier process rented and that never had a machine counts with the place of its last request.
Result<std::set<Reaper::Place>> Reaper::places_of(const std::string& run) {
  std::set<Place> out = leases_.take_places(run);
  RILLE_CHECK(journal_.reader().query(
      "SELECT DISTINCT m.provider,m.region FROM machines m JOIN leases l ON l.number=m.lease WHERE l.run=?", {run},
      [&](const store::Row& row) { out.emplace(row.text(0), row.text(1)); }));
  RILLE_TRY(const std::vector<Lease> nowhere,
            read_leases(journal_.reader(),
                        "WHERE run=? AND NOT EXISTS (SELECT 1 FROM machines m WHERE m.lease=leases.number AND "
                        "m.generation=leases.generation)",
                        {run}));
  for (const Lease& lease : nowhere) out.emplace(lease.provider, lease.request.offer.region);
  return out;
}

Async<> Reaper::sweep(std::string run, Manager::Event event) {
  const auto leases = std::make_shared<std::set<std::string>>();
  RILLE_CO_CHECK(journal_.reader().query("SELECT id FROM leases WHERE run=?", {run},
                                         [&](const store::Row& row) { leases->insert(row.text(0)); }));
  if (leases->empty()) co_return success();
  RILLE_CO_TRY(const std::set<Place> places, places_of(run));
  ReapReport report;
  std::vector<Together<bool>> asked;
  for (const Place& place : places)
    asked.push_back(
        {place.first, [this, place, leases, &report](CancelToken) { return sweep_place(place, leases, report); }});
  const auto done = co_await together(loop_, std::move(asked), 0, {});
  for (const Result<bool>& one : done) RILLE_CO_CHECK(one);
  for (const Lease& stray : report.released) leases_.tell(event, stray.run, "stray", stray.to_value(now_us()));
  const auto warn = [&](const char* what, std::string message) {
    leases_.tell(event, run, "warning", Value().set("what", what).set("message", std::move(message)));
  };
  for (const Lease& stray : report.failed)
    warn("a machine that no lease accounts for",
         fmt::format("{} of {} bears the tag of '{}' and could not be ended: {}; `rille gc` tries again",
                     stray.machine_id, stray.provider, stray.name, stray.error));
  for (const Error& e : report.errors)
    warn("the last look for machines of this run",
         fmt::format("{}: {}; `rille gc` and `rille watch` look again", e.provider, e.message));
  co_return success();
}

Async<bool> Reaper::sweep_place(Place place, Names leases, ReapReport& report) {
  const Result<provider::Provider*> provider = registry_.find(place.first);
  Result<Survey> shown = provider ? Survey() : Result<Survey>(provider.error());
  if (provider) {
    const std::string what = "asking " + place.first + " for its machines";
    const auto look = [this, from = *provider, region = place.second, leases](CancelToken t) {
      return shown_by(from, region, leases, std::move(t));
    };
    shown = co_await with_deadline(loop_, sweep_patience_ms, {}, what, look);
  }
  if (!shown) {
    Error why = shown.error();
    why.provider = place.first;
    report.errors.push_back(std::move(why));
    co_return true;
  }
  for (Error& e : shown->errors) report.errors.push_back(std::move(e));
  const ReapRequest request;
  for (Survey::Shown& one : shown->machines)
    if (!is_old_news(one, (*provider)->traits().visibility_lag_ms, now_us()))
      RILLE_CO_CHECK(co_await end_stray(std::move(one), request, report));
  co_return true;
}

}  // namespace rille::lease
