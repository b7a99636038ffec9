// `rille schedule`: manages the scripts that `rille watch` starts repeatedly.
#include <fmt/format.h>

#include <filesystem>

#include "bindings/cli/command.hpp"
#include "bindings/cli/rehearsal.hpp"
#include "bindings/cli/runs.hpp"
#include "runtime/workflow/engine/run_lock.hpp"
#include "runtime/workflow/engine/schedules.hpp"

namespace rille::cli {

namespace {

struct ScheduleCommand final : Command {
  Exit run(App& app) override;
};

struct ScheduleAddCommand final : Command {
  engine::Schedule schedule;
  std::vector<std::string> script_arguments;
  void declare(Options& o) override {
    o.option("NAME", schedule.name, "of the schedule; its runs are called NAME-20261121T030000Z").required();
    o.option("WHEN", schedule.when, "`every 6h`, or as cron has it, in UTC: `0 3 * * *`").required();
    o.option("FILE", schedule.script, "the script; its own options follow").required();
    o.option("--missed", schedule.missed, "what to do about times when nothing watched: skip, one (the last), all")
        .among({"skip", "one", "all"});
    o.option("--overlap", schedule.overlap, "what to do while its last run goes on: skip, queue, cancel, allow")
        .among({"skip", "queue", "cancel", "allow"});
    o.option("--tag", schedule.tag, "whose budget its runs share");
    o.script_words(ScriptWords::after_file, script_arguments);
  }
  Exit run(App& app) override;
};

struct ScheduleRemoveCommand final : Command {
  std::string name;
  void declare(Options& o) override { o.option("NAME", name, "of the schedule").required(); }
  Exit run(App& app) override;
};

Exit ScheduleCommand::run(App& app) {
  engine::Schedules schedules(*app.loop, app.engine->journal());
  auto all = schedules.all();
  if (!all) return fail(app, all.error());
  if (app.json) {
    Value::Array out;
    for (const auto& s : *all) out.push_back(s.to_value());
    app.terminal.out(Value(std::move(out)).to_json_pretty() + "\n");
    return Exit::ok;
  }
  if (all->empty()) {
    app.terminal.out("no schedules yet: rille schedule add NAME WHEN FILE\n");
    return Exit::ok;
  }
  std::vector<std::vector<std::string>> rows{{"SCHEDULE", "WHEN", "NEXT", "LAST RUN", "STATE", "SCRIPT"}};
  for (const auto& s : *all) {
    std::string state;
    if (auto run = app.engine->run(s.last_run); run && !s.last_run.empty()) state = run->state;
    rows.push_back({s.name, s.when, s.to_value().text("next"), s.last_run, state, s.script});
  }
  app.terminal.out(format_table(rows));
  if (!engine::RunLock::held(app.engine->home() + "/watch")) app.terminal.note("nothing starts them now: rille watch");
  return Exit::ok;
}

Exit ScheduleAddCommand::run(App& app) {
  std::error_code ec;
  std::string given = schedule.script;
  schedule.script = std::filesystem::absolute(given, ec).lexically_normal().string();
  if (!std::filesystem::is_regular_file(schedule.script, ec))
    return fail_usage(app, make_error(ErrorKind::invalid, fmt::format("there is no script '{}'", given)));
  Result<Value> args = parse_script_arguments(script_arguments);
  if (!args) return fail_usage(app, args.error());
  if (Result<> taken = check_script_arguments(app, schedule.script, script_arguments); !taken)
    return fail_usage(app, taken.error());
  schedule.args = std::move(*args);
  engine::Schedules schedules(*app.loop, app.engine->journal());
  std::string name = schedule.name;
  if (Result<> r = run_blocking(*app.loop, schedules.add(std::move(schedule))); !r)
    return r.error().kind == ErrorKind::invalid ? fail_usage(app, r.error()) : fail(app, r.error());
  auto all = schedules.all();
  if (!all) return fail(app, all.error());
  for (const auto& s : *all)
    if (s.name == name)
      app.terminal.out(app.json ? s.to_value().to_json_pretty() + "\n"
                                : fmt::format("{}: first at {}\n", name, s.to_value().text("next")));
  if (!engine::RunLock::held(app.engine->home() + "/watch")) app.terminal.note("nothing starts it now: rille watch");
  return Exit::ok;
}

Exit ScheduleRemoveCommand::run(App& app) {
  engine::Schedules schedules(*app.loop, app.engine->journal());
  Result<> r = run_blocking(*app.loop, schedules.remove(name));
  if (!r) return fail(app, r.error());
  if (app.json) app.terminal.out(Value().set("removed", name).to_json_pretty() + "\n");
  return Exit::ok;
}

const Registered<ScheduleCommand> schedule_row({Group::run, "schedule",
                                                "scripts that `rille watch` starts at set times"});
const Registered<ScheduleAddCommand> schedule_add_row({Group::run, "schedule add",
                                                       "add one: rille schedule add NAME WHEN FILE [--x 1 ..]"});
const Registered<ScheduleRemoveCommand> schedule_remove_row({Group::run, "schedule remove",
                                                             "remove one; its runs stay"});

}  // namespace

}  // namespace rille::cli
