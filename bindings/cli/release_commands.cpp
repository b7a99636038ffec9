// `rille release` and `rille gc`: terminate rented machines. A second Ctrl-C starts `rille release RUN --abandoned`.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "bindings/cli/command.hpp"
#include "bindings/cli/runs.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/run_state.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/lease/volumes.hpp"

namespace rille::cli {

Exit abandon_run(App& app, const std::string& run) {
  lease::Manager::Event tell = [&app](const std::string& event, Value data) {
    if (event == "released") app.terminal.note("released " + data.text("name"));
    else if (event == "stray") app.terminal.note("ended " + data.text("machine") + ", which had come to light late");
    else if (event == "warning") app.terminal.note("warning: " + data.text("what") + ": " + data.text("message"));
  };
  Result<> r = run_blocking(*app.loop, app.engine->abandon(run, tell));
  if (r) return Exit::interrupted;
  // The second Ctrl-C may come just as the run has released everything and ended.
  if (const auto row = app.engine->run(run); row && run_has_ended(row->state)) return Exit::interrupted;
  fail(app, r.error());
  app.terminal.note("something is still rented: see `rille leases`, end it with `rille release` or `rille gc`");
  return Exit::cleanup_pending;
}

namespace {

// Finds the leases that `what` means: a lease id, a run, or a name that only one lease has.
Result<std::vector<std::string>> leases_named(const App& app, const std::string& what) {
  RILLE_TRY(std::vector<lease::Lease> leases, app.engine->leases().all(false));
  std::vector<std::string> ids, known;
  const auto kept = std::stable_partition(leases.begin(), leases.end(), [](const auto& l) { return !is_kept(l); });
  const std::vector<lease::Lease> volumes(std::make_move_iterator(kept), std::make_move_iterator(leases.end()));
  leases.erase(kept, leases.end());
  // Volumes after the instances that have them.
  std::stable_partition(leases.begin(), leases.end(), [](const auto& l) { return !is_volume(l); });
  for (const auto& l : leases) {
    known.push_back(l.id);
    if (l.id == what || l.run == what) ids.push_back(l.id);
  }
  if (!ids.empty()) return ids;
  std::string all;  // names are unique within a run only, so several leases may match
  for (const auto& l : leases)
    if (l.name == what && (ids.empty() || !is_volume(l))) {
      ids.push_back(l.id);
      all += fmt::format("{}{} of run {}", all.empty() ? "" : ", ", l.id, l.run);
    }
  if (ids.size() > 1)
    return make_error(ErrorKind::invalid, fmt::format("{} leases have the name '{}': {}", ids.size(), what, all),
                      "name the lease by its id, or name the run");
  if (ids.empty())
    if (auto run = app.engine->run(what))
      for (const auto& l : leases)
        if (l.run == run->id) ids.push_back(l.id);
  if (!ids.empty()) return ids;
  for (const auto& l : volumes)
    if (l.id == what || l.name == what)
      return make_error(ErrorKind::invalid, fmt::format("'{}' is a volume, which is kept until it is deleted", l.name),
                        "delete it with its data: rille volume rm " + l.name);
  // A lease between two machines is not open, but may still have volumes.
  RILLE_TRY(const std::optional<lease::Lease> other, app.engine->leases().find(what));
  if (other && other->between_machines()) return std::vector<std::string>(1, other->id);
  std::string near = did_you_mean(what, known);
  return make_error(ErrorKind::invalid, fmt::format("no active lease or run is called '{}'", what),
                    near.empty() ? "list the leases with `rille leases`" : fmt::format("did you mean {}?", near));
}

struct ReleaseCommand final : Command {
  std::string what;
  bool abandoned = false;
  void declare(Options& o) override {
    o.option("LEASE|RUN", what, "which").required();
    o.flag("--abandoned", abandoned, "").hidden();  // see abandon() in session.hpp
  }
  Exit run(App& app) override;
};

Exit ReleaseCommand::run(App& app) {
  if (abandoned) return abandon_run(app, what);
  Result<std::vector<std::string>> ids = leases_named(app, what);
  if (!ids) return fail(app, ids.error());
  Value::Array released, failed;
  for (const std::string& id : *ids) {
    Result<> r = run_blocking(*app.loop, app.engine->leases().release(id, nullptr));
    if (!r) failed.push_back(error_to_value(r.error()));
    else released.push_back(id);
    if (app.json) continue;
    if (r) app.terminal.note("released " + id);
    else fail(app, r.error());
  }
  const Exit code = failed.empty() ? Exit::ok : Exit::cleanup_pending;
  if (app.json)
    app.terminal.out(Value().set("released", std::move(released)).set("errors", std::move(failed)).to_json_pretty() +
                     "\n");
  return code;
}

Value gc_value(const App& app, const lease::ReapReport& report) {
  const std::int64_t now_us = app.loop->clock().wall_us();
  auto list = [&](const std::vector<lease::Lease>& leases) {
    Value::Array out;
    for (const auto& l : leases) out.push_back(l.to_value(now_us));
    return Value(std::move(out));
  };
  Value::Array held, errors;
  for (const lease::Held& h : report.held)
    held.push_back(h.lease.to_value(now_us).set("why", h.why).set("until", format_utc(h.until_us)));
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
    if (lease::is_kept(l))
      out += fmt::format(
          "the volume {0} ({1}) is at {2}, which did not show it before; nobody has deleted it, and it was left alone. "
          "End it with its data with `rille gc --unknown {1}`\n",
          l.name, l.machine_id, l.provider);
  for (const auto& l : report.unknown)
    if (!lease::is_kept(l))
      out += fmt::format(
          "unknown machine {0} at {1} bears our tag {2}; it is in no journal here and was left alone{3}. "
          "If no other RILLE_HOME holds it, end it with `rille gc --unknown {0}`\n",
          l.machine_id, l.provider, l.tag,
          l.expires_us > now ? fmt::format(" until {}", format_utc(l.expires_us)) : "");
  for (const Error& e : report.errors)
    out += fmt::format("could not ask {} for its machines: {}\n", e.provider, e.message);
  if (!report.errors.empty()) out += "what is there is not known: `rille gc` again, when it answers\n";
  return out.empty() ? "nothing to clean up\n" : out;
}

struct GcCommand final : Command {
  std::string now, unknown;
  void declare(Options& o) override {
    o.option("--now", now, "RUN: release the leases held for this run, too; no process may run it");
    o.option("--unknown", unknown, "MACHINE: end this machine, which has our tag but is in no journal here");
  }
  Exit run(App& app) override;
};

Exit GcCommand::run(App& app) {
  engine::ReapSpec spec;
  spec.now = now;
  spec.unknown = unknown;
  auto report = run_blocking(*app.loop, app.engine->reap(std::move(spec)));
  if (!report) return fail(app, report.error());
  app.terminal.out(app.json ? gc_value(app, *report).to_json_pretty() + "\n" : gc_text(app, *report));
  return report->failed.empty() && report->errors.empty() ? Exit::ok : Exit::cleanup_pending;
}

const Registered<ReleaseCommand> release_row({Group::money, "release", "end a lease, or all leases of a run"});
const Registered<GcCommand> gc_row({Group::money, "gc", "release the machines that no run will release"});

}  // namespace

}  // namespace rille::cli
