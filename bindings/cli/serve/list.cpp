// The list of runs and of what is rented.
#include <filesystem>

#include "bindings/cli/report/texts.hpp"
#include "bindings/cli/runs.hpp"
#include "bindings/cli/serve/site.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/type_of.hpp"

namespace rille::cli {

namespace {

constexpr int listed_runs_max = 200;

Result<Value> listed_run(const App& app, const engine::RunRow& run, std::int64_t now_us) {
  RILLE_TRY(const std::vector<lease::Lease> leases, app.engine->leases().of_run(run.id));
  lease::Amounts cost;
  for (const lease::Lease& l : leases) lease::add_to(cost, l.costs(now_us));
  Value v;
  v.set("id", run.id).set("state", shown_state(app, run)).set("created", format_utc(run.created_us));
  v.set("name", plain_text(std::filesystem::path(run.script).filename().string()));
  v.set("seconds", static_cast<double>((run.ended_us ? run.ended_us : now_us) - run.created_us) / 1e6);
  v.set("cost", lease::to_string(cost));
  return v;
}

Value listed_lease(const App& app, const lease::Lease& l, std::int64_t now_us) {
  const Result<std::int64_t> ends_us = app.engine->leases().reaper().ends_us(l);
  const std::int64_t end_us = ends_us ? *ends_us : l.expires_us;
  Value v;
  v.set("id", l.id).set("name", plain_text(l.name)).set("state", l.state).set("run", l.run);
  v.set("provider", plain_text(l.provider)).set("region", plain_text(l.request.offer.region));
  v.set("type", plain_text(provider::type_of(l.request.offer))).set("machine", plain_text(l.machine_id));
  v.set("price", l.price().shown()).set("cost", lease::to_string(l.costs(now_us)));
  if (end_us) v.set("ends", static_cast<double>(end_us - now_us) / 1e6);
  return v;
}

}  // namespace

Result<Value> list_of(const App& app) {
  const std::int64_t now_us = app.loop->clock().wall_us();
  RILLE_TRY(std::vector<engine::RunRow> runs, app.engine->runs(listed_runs_max + 1));
  RILLE_TRY(const std::vector<lease::Lease> leases, app.engine->leases().all(false));
  Value list;
  list.set("home", plain_text(app.engine->home()));
  if (runs.size() > listed_runs_max) {
    runs.pop_back();
    list.set("more", true);
  }
  Value::Array listed, rented;
  for (const engine::RunRow& run : runs) {
    RILLE_TRY(Value row, listed_run(app, run, now_us));
    listed.push_back(std::move(row));
  }
  for (const lease::Lease& l : leases) rented.push_back(listed_lease(app, l, now_us));
  list.set("runs", std::move(listed)).set("leases", std::move(rented));
  return list;
}

}  // namespace rille::cli
