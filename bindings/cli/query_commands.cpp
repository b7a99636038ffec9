// The commands that read the journal and those that end what it names. They need no network but to release.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "bindings/cli/app.hpp"
#include "bindings/cli/fit.hpp"
#include "bindings/cli/runs.hpp"
#include "bindings/cli/timeline.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"

namespace rille::cli {

namespace {

std::string age(const App& app, std::int64_t us) {
  return format_duration_ms((app.loop->clock().wall_us() - us) / 1000) + " ago";
}

template <class Items>
int print_json(App& app, const Items& items) {
  Value::Array out(items.begin(), items.end());
  app.terminal.out(Value(std::move(out)).to_json_pretty() + "\n");
  return 0;
}

Value lease_value(const App& app, const lease::Lease& l) { return l.to_value(app.loop->clock().wall_us()); }

std::string shown_state(const App& app, const engine::RunRow& r) {
  // A run that says it is running, but whose runner is gone, was killed: resume continues it.
  if (r.state == "running" && !app.engine->alive(r.id)) return "interrupted";
  return r.state;
}

}  // namespace

int ps_command(App& app, const PsArguments& wanted) {
  constexpr int all = 1'000'000;
  Result<std::vector<engine::RunRow>> runs =
      app.engine->runs(wanted.state.empty() ? wanted.limit : all, wanted.with_children);
  if (!runs) return fail(app, runs.error());
  if (!wanted.state.empty()) {
    std::erase_if(*runs, [&](const engine::RunRow& r) { return shown_state(app, r) != wanted.state; });
    if (runs->size() > static_cast<std::size_t>(wanted.limit)) runs->resize(static_cast<std::size_t>(wanted.limit));
  }
  if (app.json) {
    std::vector<Value> values;
    for (const auto& r : *runs) values.push_back(r.to_value().set("state", shown_state(app, r)));
    return print_json(app, values);
  }
  if (runs->empty()) {
    app.terminal.out(wanted.state.empty() ? "no runs yet: rille run FILE\n"
                                          : fmt::format("no run is {}\n", wanted.state));
    return 0;
  }
  std::vector<std::vector<std::string>> rows{{"RUN", "STATE", "STARTED", "TOOK", "COST", "SCRIPT"}};
  for (const auto& r : *runs) {
    lease::Amounts cost;
    if (auto leases = app.engine->leases().of_run(r.id))
      for (const auto& l : *leases) lease::add_to(cost, l.costs(app.loop->clock().wall_us()));
    std::string took = r.ended_us ? format_duration_ms((r.ended_us - r.created_us) / 1000) : "";
    rows.push_back({r.id, shown_state(app, r), age(app, r.created_us), took, lease::to_string(cost), r.script});
  }
  app.terminal.out(fit_table(app.terminal, std::move(rows),
                             {{"SCRIPT", 16}, {"COST"}, {"TOOK"}, {"SCRIPT", 8}, {"SCRIPT"}, {"STARTED"}}));
  return 0;
}

int show_command(App& app, const std::string& id) {
  Result<engine::RunRow> run = app.engine->run(id);
  if (!run) return fail(app, run.error());
  auto entries = app.engine->entries(run->id);
  auto leases = app.engine->leases().of_run(run->id);
  auto children = app.engine->children(run->id);
  if (!entries) return fail(app, entries.error());
  if (!children) return fail(app, children.error());
  if (!leases) return fail(app, leases.error());
  if (app.json) {
    Value v = run->to_value();
    Value::Array held, started;
    for (const auto& l : *leases) held.push_back(lease_value(app, l));
    for (const auto& c : *children) started.push_back(c.to_value().set("state", shown_state(app, c)));
    v.set("state", shown_state(app, *run))
        .set("children", std::move(started))
        .set("entries", Value::Array(entries->begin(), entries->end()))
        .set("leases", std::move(held))
        .set("timeline", timeline(*run, *entries, *leases, app.loop->clock().wall_us()));
    app.terminal.out(v.to_json_pretty() + "\n");
    return 0;
  }
  std::string out = fmt::format("run      {}\nscript   {}\nstate    {}\nstarted  {}\n", run->id, run->script,
                                shown_state(app, *run), format_utc(run->created_us));
  if (app.engine->alive(run->id)) out += fmt::format("process  {}\n", run->pid);
  if (!run->forked_from.empty()) out += "forked   from " + run->forked_from + "\n";
  if (run->deadline_us) out += fmt::format("deadline {}\n", format_utc(run->deadline_us));
  if (run->ended_us) out += fmt::format("took     {}\n", format_duration_ms((run->ended_us - run->created_us) / 1000));
  if (run->args.as_object() && !run->args.as_object()->empty()) out += "args     " + run->shown_args().to_json() + "\n";
  if (!run->result.is_null()) out += "result   " + run->result.to_json() + "\n";
  if (run->error) out += "error    " + run->error->summary() + "\n";
  const std::vector<Value> times = timeline(*run, *entries, *leases, app.loop->clock().wall_us());
  if (!times.empty()) out += "\n" + timeline_table(times, app.terminal.width());
  if (!children->empty()) {
    std::vector<std::vector<std::string>> rows{{"RUN THAT IT STARTED", "STATE", "TOOK", "SCRIPT"}};
    for (const auto& c : *children) {
      std::string took = c.ended_us ? format_duration_ms((c.ended_us - c.created_us) / 1000) : "";
      rows.push_back({c.id, shown_state(app, c), took, std::filesystem::path(c.script).filename().string()});
    }
    out += "\n" + format_table(rows);
  }
  app.terminal.out(out);
  if (!leases->empty()) {
    app.terminal.out("\n");
    return leases->empty() ? 0 : cost_command(app, run->id, "", false);
  }
  return 0;
}

int logs_command(App& app, const std::string& id, bool follow) {
  Result<engine::RunRow> run = app.engine->run(id);
  if (!run) return fail(app, run.error());
  if (app.json) {
    auto events = app.engine->events(run->id);
    if (!events) return fail(app, events.error());
    return print_json(app, *events);
  }
  std::string path = app.engine->home() + "/runs/" + run->id + "/log";
  std::ifstream file(path, std::ios::binary);
  char block[65536];
  bool alive = true;
  while (true) {
    while (file.read(block, sizeof block), file.gcount() > 0)
      app.terminal.out({block, static_cast<std::size_t>(file.gcount())});
    if (!follow || !alive) return 0;
    alive = app.engine->alive(run->id);  // once more after its end, for the last lines
    file.clear();
    run_blocking(*app.loop, sleep_for(*app.loop, 200)).ok();
    if (!file.is_open()) file.open(path, std::ios::binary);
  }
}

int abandon_command(App& app, const std::string& run) {
  lease::Manager::Event tell = [&app](const std::string& event, Value data) {
    if (event == "released") app.terminal.note("released " + data.text("name"));
    else if (event == "stray") app.terminal.note("ended " + data.text("machine") + ", which had come to light late");
    else if (event == "warning") app.terminal.note("warning: " + data.text("what") + ": " + data.text("message"));
  };
  Result<> r = run_blocking(*app.loop, app.engine->abandon(run, tell));
  if (r) return 130;
  fail(app, r.error());
  app.terminal.note("something is still rented: see `rille leases`, end it with `rille release` or `rille gc`");
  return 3;
}

int release_command(App& app, const std::string& what) {
  auto leases = app.engine->leases().all(false);
  if (!leases) return fail(app, leases.error());
  std::vector<std::string> ids;
  std::vector<std::string> known;
  for (const auto& l : *leases) {
    known.push_back(l.id);
    if (l.id == what || l.run == what) ids.push_back(l.id);
  }
  if (ids.empty()) {  // a name is one run's: several leases may bear it
    std::string all;
    for (const auto& l : *leases)
      if (l.name == what) {
        ids.push_back(l.id);
        all += fmt::format("{}{} of run {}", all.empty() ? "" : ", ", l.id, l.run);
      }
    if (ids.size() > 1)
      return fail(app,
                  make_error(ErrorKind::invalid, fmt::format("{} leases are called '{}': {}", ids.size(), what, all),
                             "name the lease by its id, or the run"));
  }
  if (ids.empty()) {
    if (auto run = app.engine->run(what))
      for (const auto& l : *leases)
        if (l.run == run->id) ids.push_back(l.id);
  }
  if (ids.empty()) {
    std::string near = did_you_mean(what, known);
    return fail(
        app, make_error(ErrorKind::invalid, fmt::format("nothing live is called '{}'", what),
                        near.empty() ? "list the leases with `rille leases`" : fmt::format("did you mean {}?", near)));
  }
  Value::Array released, failed;
  for (const std::string& id : ids) {
    Result<> r = run_blocking(*app.loop, app.engine->leases().release(id, nullptr));
    if (!r) failed.push_back(error_to_value(r.error()));
    else released.push_back(id);
    if (app.json) continue;
    if (r) app.terminal.note("released " + id);
    else fail(app, r.error());
  }
  int code = failed.empty() ? 0 : 3;
  if (app.json)
    app.terminal.out(Value().set("released", std::move(released)).set("errors", std::move(failed)).to_json_pretty() +
                     "\n");
  return code;
}

namespace {

Value gc_value(const App& app, const lease::ReapReport& report) {
  auto list = [&](const std::vector<lease::Lease>& leases) {
    Value::Array out;
    for (const auto& l : leases) out.push_back(lease_value(app, l));
    return Value(std::move(out));
  };
  Value::Array held, errors;
  for (const lease::Held& h : report.held)
    held.push_back(lease_value(app, h.lease).set("why", h.why).set("until", format_utc(h.until_us)));
  for (const Error& e : report.errors) errors.push_back(error_to_value(e));
  Value v;
  v.set("released", list(report.released)).set("failed", list(report.failed)).set("unknown", list(report.unknown));
  v.set("revived", list(report.revived)).set("held", std::move(held)).set("errors", std::move(errors));
  return v;
}

std::string gc_text(const App& app, const lease::ReapReport& report) {
  std::int64_t now = app.loop->clock().wall_us();
  std::string out;
  for (const auto& l : report.revived)
    out += fmt::format("machine {} at {} was alive, though the journal had settled it ({} of run {})\n", l.machine_id,
                       l.provider, l.name, l.run);
  for (const auto& l : report.released) out += fmt::format("released {} {} ({})\n", l.id, l.name, l.machine_id);
  for (const auto& l : report.failed)
    out += fmt::format("NOT released {} {} ({}): {}\n", l.id, l.name, l.machine_id, l.error);
  for (const auto& h : report.held)
    out += fmt::format("held {} {} ({}) for {}, at {} per hour: {}; until {}, in {}\n", h.lease.id, h.lease.name,
                       h.lease.machine_id, h.lease.run, h.lease.price().shown(), h.why, format_utc(h.until_us),
                       format_duration_ms((h.until_us - now) / 1000));
  if (!report.held.empty()) out += "end them now with `rille gc --now RUN`, or go on with `rille resume RUN`\n";
  for (const auto& l : report.unknown)
    out += fmt::format(
        "unknown machine {0} at {1} bears our tag {2}; it is in no journal here and was left alone{3}. "
        "If no other RILLE_HOME holds it, end it with `rille gc --unknown {0}`\n",
        l.machine_id, l.provider, l.tag, l.expires_us > now ? fmt::format(" until {}", format_utc(l.expires_us)) : "");
  for (const Error& e : report.errors)
    out += fmt::format("could not ask {} for its machines: {}\n", e.provider, e.message);
  if (!report.errors.empty()) out += "what is there is not known: `rille gc` again, when it answers\n";
  return out.empty() ? "nothing to clean up\n" : out;
}

}  // namespace

int gc_command(App& app, const std::string& now, const std::string& unknown) {
  engine::ReapSpec spec;
  spec.now = now;
  spec.unknown = unknown;
  auto report = run_blocking(*app.loop, app.engine->reap(std::move(spec)));
  if (!report) return fail(app, report.error());
  app.terminal.out(app.json ? gc_value(app, *report).to_json_pretty() + "\n" : gc_text(app, *report));
  return report->failed.empty() && report->errors.empty() ? 0 : 3;
}

int signal_command(App& app, const std::string& run, const std::string& name, const std::string& value) {
  // A value that is JSON is taken as such; anything else is a string.
  Result<Value> payload = Value::from_json(value);
  Result<engine::RunRow> row = open_run(app, run, true);
  if (!row) return fail(app, row.error());
  Result<> r = run_blocking(*app.loop, app.engine->signal(row->id, name, payload ? *payload : Value(value)));
  if (!r) return fail(app, r.error());
  if (!app.json) app.terminal.note(fmt::format("run {} gets '{}' when it waits for it", row->id, name));
  else
    app.terminal.out(Value()
                         .set("run", row->id)
                         .set("signal", name)
                         .set("value", payload ? *payload : Value(value))
                         .to_json_pretty() +
                     "\n");
  return 0;
}

}  // namespace rille::cli
