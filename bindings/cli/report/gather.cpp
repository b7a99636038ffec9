// report_of: collects what is known of a run.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "bindings/cli/report/report.hpp"
#include "bindings/cli/report/texts.hpp"
#include "bindings/cli/runs.hpp"
#include "bindings/cli/timeline.hpp"
#include "runtime/core/base/build_id.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/lease/volumes.hpp"
#include "runtime/workflow/provider/type_of.hpp"

namespace rille::cli {

namespace {

constexpr std::size_t value_bytes_max = 300, result_bytes_max = 20'000;
constexpr std::size_t log_bytes_max = 256 << 10, source_bytes_max = 256 << 10, sources_bytes_max = 1 << 20;

double seconds_since(std::int64_t us, std::int64_t begin_us) { return static_cast<double>(us - begin_us) / 1e6; }

Value run_facts(const App& app, const engine::RunRow& run, const std::string& state, std::int64_t now_us) {
  Value v;
  v.set("id", run.id).set("script", plain_text(run.script)).set("state", state).set("mode", run.mode);
  v.set("name", plain_text(std::filesystem::path(run.script).filename().string()));
  v.set("created", format_utc(run.created_us)).set("created_us", run.created_us);
  v.set("seconds", seconds_since(run.ended_us ? run.ended_us : now_us, run.created_us));
  if (run.ended_us) v.set("ended", format_utc(run.ended_us));
  if (run.deadline_us) v.set("deadline", format_utc(run.deadline_us));
  if (const Value::Object* args = run.args.as_object(); args && !args->empty())
    v.set("args", plain_json(run.shown_args(), result_bytes_max));
  if (!run.result.is_null()) v.set("result", plain_json(run.result, result_bytes_max));
  if (run.error) v.set("error", plain_value(error_to_value(*run.error)));
  if (run.cancel_reason) v.set("cancelled", plain_text(run.cancel_reason->message));
  for (const auto& [key, text] :
       {std::pair("forked_from", &run.forked_from), std::pair("tag", &run.tag), std::pair("parent", &run.parent)})
    if (!text->empty()) v.set(key, plain_text(*text));
  if (app.engine->alive(run.id)) v.set("process", run.pid);
  return v;
}

Value report_entry(const Value& e, const engine::RunRow& run, std::int64_t now_us) {
  Value v;
  for (const char* key : {"key", "fiber", "name", "kind", "state", "source"}) v.set(key, plain_text(e.text(key)));
  const std::int64_t from = e.integer("started_us");
  const bool open = !e["seconds"].as_number();
  v.set("attempt", e.integer("attempt")).set("start", seconds_since(from, run.created_us));
  v.set("seconds",
        open ? seconds_since(std::max(from, run.ended_us ? run.ended_us : now_us), from) : e.number("seconds"));
  if (open) v.set("open", true);
  if (!e["error"].is_null()) v.set("error", plain_value(e["error"]));
  if (!e["file"].is_null()) v.set("value", "in the file " + plain_text(e.text("file")));
  else if (!e["value"].is_null()) v.set("value", plain_json(e["value"], value_bytes_max));
  return v;
}

void add_offer(Value& v, const provider::Offer& offer) {
  v.set("type", plain_text(provider::type_of(offer))).set("spot", offer.spot);
  if (!offer.gpu.empty()) v.set("gpu", plain_text(offer.gpu)).set("gpu_count", offer.gpu_count);
}

Value report_machine(const lease::Lease& l, const lease::Tenure& t, std::int64_t begin_us, std::int64_t now_us) {
  const bool newest = t.generation == l.generation;
  const std::int64_t to = t.to_us ? t.to_us : l.billable() ? now_us : std::max(l.released_us, t.from_us);
  Value v;
  v.set("lease", l.id).set("name", plain_text(l.name)).set("provider", plain_text(t.provider));
  v.set("region", plain_text(t.region)).set("machine", plain_text(t.machine_id)).set("generation", t.generation);
  v.set("state", newest ? l.state : "released");
  v.set("start", seconds_since(t.from_us, begin_us)).set("seconds", seconds_since(to, t.from_us));
  if (!t.to_us && l.billable()) v.set("open", true);
  if (lease::is_volume(l)) v.set("volume", true);
  else
    v.set("idle_seconds", seconds_since(t.idle_us(now_us), 0))
        .set("starting_seconds", seconds_since(t.starting_us(now_us), 0));
  if (newest) add_offer(v, l.request.offer);
  if (newest && !l.error.empty()) v.set("error", plain_text(l.error));
  v.set("price", t.price().shown()).set("cost_micros", t.cost(now_us)).set("reconciled", t.reconciled());
  const lease::Amounts all = t.costs(now_us);
  v.set("cost", lease::to_string(all) + (t.unknown() ? " + ?" : ""));
  if (t.unknown()) v.set("unknown_price", true);
  return v;
}

Value report_machines(const std::vector<lease::Lease>& leases, const engine::RunRow& run, std::int64_t now_us) {
  Value::Array out;
  for (const lease::Lease& l : leases)
    for (const lease::Tenure& t : l.tenures) out.push_back(report_machine(l, t, run.created_us, now_us));
  return out;
}

// The beginning and the end of the run's log.
Value report_log(const App& app, const engine::RunRow& run) {
  std::ifstream file(app.engine->home() + "/runs/" + run.id + "/log", std::ios::binary | std::ios::ate);
  Value v;
  const std::int64_t size = file ? static_cast<std::int64_t>(file.tellg()) : 0;
  std::string text(static_cast<std::size_t>(std::min<std::int64_t>(size, log_bytes_max)), '\0');
  const std::int64_t left_out = size - static_cast<std::int64_t>(text.size());
  file.seekg(left_out);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  // A progress bar writes its line again and again: only its last state counts.
  std::string lines;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = std::min(text.find('\n', i), text.size());
    std::string_view line(text.data() + i, end - i);
    while (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t again = line.rfind('\r');
    lines += again == line.npos ? line : line.substr(again + 1);
    if (end < text.size()) lines += '\n';
    i = end + 1;
  }
  v.set("text", plain_text(lines)).set("bytes", size).set("left_out_bytes", left_out);
  return v;
}

Result<Value> report_sources(const App& app, const engine::RunRow& run) {
  RILLE_TRY(auto sources, app.engine->sources(run.id));
  Value::Array out;
  std::size_t total = 0;
  for (const auto& [module, text] : sources) {
    if (module.starts_with(':')) continue;  // limits of the run, not code
    Value v;
    const std::size_t room = std::min(source_bytes_max, sources_bytes_max - std::min(total, sources_bytes_max));
    v.set("module", plain_text(module)).set("text", plain_text(std::string_view(text).substr(0, room)));
    if (text.size() > room) v.set("left_out_bytes", static_cast<std::int64_t>(text.size() - room));
    if (module == std::filesystem::path(run.script).filename()) v.set("script", true);
    total += std::min(room, text.size());
    out.push_back(std::move(v));
  }
  return Value(std::move(out));
}

Result<Value> report_children(const App& app, const engine::RunRow& run) {
  RILLE_TRY(std::vector<engine::RunRow> children, app.engine->children(run.id));
  Value::Array out;
  for (const engine::RunRow& c : children) {
    Value v;
    v.set("id", c.id).set("state", shown_state(app, c)).set("script", plain_text(c.script));
    if (c.ended_us) v.set("seconds", seconds_since(c.ended_us, c.created_us));
    out.push_back(std::move(v));
  }
  return Value(std::move(out));
}

}  // namespace

Result<Value> report_of(const App& app, const engine::RunRow& run) {
  const std::int64_t now_us = app.loop->clock().wall_us();
  RILLE_TRY(std::vector<Value> entries, app.engine->entries(run.id));
  RILLE_TRY(std::vector<Value> events, app.engine->events(run.id));
  RILLE_TRY(std::vector<lease::Lease> leases, app.engine->leases().of_run(run.id));
  RILLE_TRY(std::vector<lease::Money> budgets, app.engine->leases().money(run.id));
  RILLE_TRY(Value sources, report_sources(app, run));
  RILLE_TRY(Value children, report_children(app, run));
  RILLE_TRY(Value series, series_of(app, run, entries));
  const std::string state = shown_state(app, run);
  Value::Array rows;
  for (const Value& e : entries) rows.push_back(report_entry(e, run, now_us));
  Value environment;
  environment.set("made", format_utc(now_us)).set("build", build_id()).set("version", RILLE_VERSION);
  environment.set("host", plain_text(run.host)).set("processes", run.epoch);
  Value report;
  report.set("run", run_facts(app, run, state, now_us)).set("entries", std::move(rows));
  report.set("machines", report_machines(leases, run, now_us));
  report.set("money", money_of(leases, budgets.empty() ? nullptr : &budgets.front(), run.created_us, now_us));
  report.set("series", std::move(series)).set("story", story_of(run, state, events));
  report.set("checkpoints", checkpoints_of(run, events)).set("log", report_log(app, run));
  report.set("sources", std::move(sources)).set("children", std::move(children));
  report.set("environment", std::move(environment));
  return report;
}

}  // namespace rille::cli
