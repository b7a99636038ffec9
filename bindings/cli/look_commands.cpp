// `rille ps`, `rille show`, `rille logs`: show runs, read from the journal only.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "bindings/cli/brief.hpp"
#include "bindings/cli/command.hpp"
#include "bindings/cli/fit.hpp"
#include "bindings/cli/runs.hpp"
#include "bindings/cli/timeline.hpp"
#include "bindings/cli/visible.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::cli {

namespace {

std::string age(const App& app, std::int64_t us) {
  return format_duration_ms((app.loop->clock().wall_us() - us) / 1000) + " ago";
}

template <class Items>
Exit print_json(App& app, const Items& items) {
  Value::Array out(items.begin(), items.end());
  app.terminal.out(Value(std::move(out)).to_json_pretty() + "\n");
  return Exit::ok;
}

Value lease_value(const App& app, const lease::Lease& l) { return l.to_value(app.loop->clock().wall_us()); }

struct PsCommand final : Command {
  int limit = 20;
  bool with_children = false;
  std::string state;  // shows only runs in this state, as displayed; "": all states
  void declare(Options& o) override {
    o.option("-n", limit, "how many at most").between(1, 1'000'000);
    o.flag("--all", with_children, "also runs that scripts started");
    o.option("--state", state, "only runs in this state")
        .among({"running", "interrupted", "suspended", "done", "failed", "cancelled", "cleanup", "diverged"});
  }
  Exit run(App& app) override;
};

Exit PsCommand::run(App& app) {
  constexpr int all = 1'000'000;
  Result<std::vector<engine::RunRow>> runs = app.engine->runs(state.empty() ? limit : all, with_children);
  if (!runs) return fail(app, runs.error());
  if (!state.empty()) {
    std::erase_if(*runs, [&](const engine::RunRow& r) { return shown_state(app, r) != state; });
    if (runs->size() > static_cast<std::size_t>(limit)) runs->resize(static_cast<std::size_t>(limit));
  }
  if (app.json) {
    std::vector<Value> values;
    for (const auto& r : *runs) values.push_back(r.to_value().set("state", shown_state(app, r)));
    return print_json(app, values);
  }
  if (runs->empty()) {
    app.terminal.out(state.empty() ? "no runs yet: rille run FILE\n" : fmt::format("no run is {}\n", state));
    return Exit::ok;
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
  return Exit::ok;
}

// Formats the lines that `rille show` prints above the timeline.
std::string facts_of(const App& app, const engine::RunRow& run) {
  std::string out = fmt::format("run      {}\nscript   {}\nstate    {}\nstarted  {}\n", run.id, run.script,
                                shown_state(app, run), format_utc(run.created_us));
  if (app.engine->alive(run.id)) out += fmt::format("process  {}\n", run.pid);
  if (!run.forked_from.empty()) out += "forked   from " + run.forked_from + "\n";
  if (run.deadline_us) out += fmt::format("deadline {}\n", format_utc(run.deadline_us));
  if (run.ended_us) out += fmt::format("took     {}\n", format_duration_ms((run.ended_us - run.created_us) / 1000));
  const std::string whole = fmt::format("rille show {} --json", run.id);
  if (run.args.as_object() && !run.args.as_object()->empty())
    out += "args     " + brief(run.shown_args(), whole) + "\n";
  if (!run.result.is_null()) out += "result   " + brief(run.result, whole) + "\n";
  if (!run.error) return out;
  out += "error    " + run.error->summary() + "\n";
  if (run.error->cause) out += "  caused by: " + run.error->cause->summary() + "\n";
  return run.error->traceback.empty() ? out : out + run.error->traceback + "\n";
}

constexpr std::size_t agains_shown = 20;

std::string first_line(const std::string& text) { return visible_line(text.substr(0, text.find('\n'))); }

// What was tried again or moved, when and why; "": nothing was.
std::string agains_of(const std::vector<Value>& events, const std::string& run) {
  std::vector<std::vector<std::string>> rows;
  for (const Value& e : events) {
    const std::string what = e.text("event"), line = first_line(e.text("error", e.text("why")));
    if (what == "retry")
      rows.push_back({e.text("at"), fmt::format("{}, attempt {}", e.text("step"), e.integer("attempt")), line});
    else if (what == "call_restarted")
      rows.push_back({e.text("at"),
                      fmt::format("{}, attempt {}{}", e.text("call"), e.integer("attempt"),
                                  e.boolean("from_checkpoint") ? ", from its last checkpoint" : ""),
                      line});
    else if (what == "replacing")
      rows.push_back(
          {e.text("at"), fmt::format("{}, on another machine", e.text("name")), first_line(e.text("replacing"))});
  }
  if (rows.empty()) return {};
  std::string more;
  if (rows.size() > agains_shown) {
    more = fmt::format("{} earlier ones: rille logs {} --json\n", rows.size() - agains_shown, run);
    rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(agains_shown));
  }
  rows.insert(rows.begin(), {"AT", "TRIED AGAIN", "WHY"});
  return "\n" + format_table(rows) + more;
}

struct ShowCommand final : Command {
  std::string id;
  void declare(Options& o) override { o.option("RUN", id, names_a_run).required(); }
  Exit run(App& app) override;
};

Exit ShowCommand::run(App& app) {
  Result<engine::RunRow> run = app.engine->run(id);
  if (!run) return fail(app, run.error());
  auto entries = app.engine->entries(run->id);
  auto leases = app.engine->leases().of_run(run->id);
  auto children = app.engine->children(run->id);
  auto events = app.engine->events(run->id);
  if (!events) return fail(app, events.error());
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
    return Exit::ok;
  }
  std::string out = facts_of(app, *run);
  const std::vector<Value> times = timeline(*run, *entries, *leases, app.loop->clock().wall_us());
  if (!times.empty()) out += "\n" + timeline_table(times, app.terminal.width());
  out += agains_of(*events, run->id);
  if (!children->empty()) {
    std::vector<std::vector<std::string>> rows{{"RUN THAT IT STARTED", "STATE", "TOOK", "SCRIPT"}};
    for (const auto& c : *children) {
      std::string took = c.ended_us ? format_duration_ms((c.ended_us - c.created_us) / 1000) : "";
      rows.push_back({c.id, shown_state(app, c), took, std::filesystem::path(c.script).filename().string()});
    }
    out += "\n" + format_table(rows);
  }
  if (!leases->empty()) out += "\n" + cost_table(*leases, app.loop->clock().wall_us());
  app.terminal.out(out);
  return Exit::ok;
}

// Sets the file's position to where its last `lines` lines begin.
void seek_last_lines(std::ifstream& file, int lines) {
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  std::string block;
  int found = 0;
  for (std::streamoff begin = size; begin > 0;) {
    const std::streamoff end = begin;
    begin = std::max<std::streamoff>(0, end - 65536);
    block.resize(static_cast<std::size_t>(end - begin));
    file.seekg(begin);
    file.read(block.data(), end - begin);
    for (std::streamoff at = end; at > begin; --at) {
      const bool ends_the_file = at == size;  // such a newline begins no line
      if (ends_the_file || block[static_cast<std::size_t>(at - begin - 1)] != '\n' || ++found < lines) continue;
      file.seekg(at);
      return;
    }
  }
  file.seekg(0);
}

struct LogsCommand final : Command {
  std::string id;
  bool follow = false;
  int lines = 0;  // 0: all
  void declare(Options& o) override {
    o.option("RUN", id, names_a_run).required();
    o.option("-n", lines, "only the last lines, with --json the last events").between(1, 1'000'000);
    o.flag("-f,--follow", follow, "follow until the run ends");
  }
  Exit run(App& app) override;
};

Exit LogsCommand::run(App& app) {
  Result<engine::RunRow> run = app.engine->run(id);
  if (!run) return fail(app, run.error());
  if (app.json) {
    auto events = app.engine->events(run->id);
    if (!events) return fail(app, events.error());
    const auto most = static_cast<std::size_t>(lines);
    if (lines > 0 && events->size() > most) events->erase(events->begin(), events->end() - lines);
    return print_json(app, *events);
  }
  std::string path = app.engine->home() + "/runs/" + run->id + "/log";
  std::ifstream file(path, std::ios::binary);
  if (lines > 0 && file) seek_last_lines(file, lines);
  char block[65536];
  bool alive = true;
  while (true) {
    while (file.read(block, sizeof block), file.gcount() > 0)
      app.terminal.script_text({block, static_cast<std::size_t>(file.gcount())});
    if (!follow || !alive) return Exit::ok;
    alive = app.engine->alive(run->id);  // after the run's end, read the log once more for its last lines
    file.clear();
    run_blocking(*app.loop, sleep_for(*app.loop, 200)).ok();
    if (!file.is_open()) file.open(path, std::ios::binary);
  }
}

const Registered<PsCommand> ps_row({Group::look, "ps", "list runs"});
const Registered<ShowCommand> show_row({Group::look, "show", "one run: its steps, calls, leases"});
const Registered<LogsCommand> logs_row({Group::look, "logs", "what a run printed"});

}  // namespace

std::string shown_state(const App& app, const engine::RunRow& r) {
  // A run whose state is "running" but whose process is gone was killed; `rille resume` continues such a run.
  if (r.state == "running" && !app.engine->alive(r.id)) return "interrupted";
  return r.state;
}

}  // namespace rille::cli
