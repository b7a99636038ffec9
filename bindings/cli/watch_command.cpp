// `rille watch`: runs in the foreground and starts one process per run; runtime/workflow/engine/watch.hpp decides
// when.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "bindings/cli/command.hpp"
#include "bindings/cli/interrupt.hpp"
#include "bindings/cli/runs.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/loop/subprocess.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/workflow/engine/run_lock.hpp"
#include "runtime/workflow/engine/watch.hpp"

namespace rille::cli {

namespace {

constexpr std::int64_t script_bytes_max = 16 << 20;

// Prints an event as a line of text or, with --json, as one JSON object per line.
void tell(App& app, Value event) {
  std::string at = format_utc(app.loop->clock().wall_us());
  if (app.json) return app.terminal.out(event.set("at", at).to_json() + "\n");
  std::string what = event.text("event"), line;
  if (what == "started")
    line = fmt::format("{} run {}{}", event.boolean("resumed") ? "resumed" : "started", event.text("run"),
                       event.integer("try") > 1 ? fmt::format(" (try {})", event.integer("try")) : "");
  else if (what == "ended")
    line = fmt::format("run {}: {}{}", event.text("run"), event.text("state"),
                       event["error"].is_null() ? "" : ": " + event["error"].text("message"));
  else if (what == "skipped")
    line = fmt::format("{} is not run for {}: {}", event.text("schedule"), event.text("due"), event.text("why"));
  else if (what == "cancelled") line = fmt::format("cancelled run {}: {}", event.text("run"), event.text("why"));
  else if (what == "given_up") line = fmt::format("run {} is left alone: {}", event.text("run"), event.text("why"));
  else if (what == "released")
    line = fmt::format("released {} ({}), left by run {}", event.text("name"), event.text("lease"), event.text("run"));
  else if (what == "not_released")
    line = fmt::format("warning: {} ({}), left by run {}, is not released: {}", event.text("name"), event.text("lease"),
                       event.text("run"), event.text("why"));
  else if (what == "keyless")
    line = fmt::format("warning: what is rented from {} ({} open) cannot be released by this watch: {}",
                       event.text("provider"), event.integer("leases"), event.text("why"));
  else line = fmt::format("warning: {}: {}", event.text("what"), event["error"].text("message"));
  app.terminal.out(fmt::format("{} {}\n", at, line));
}

// Results of the reaper's passes: whether the last pass finished, and which problems were already reported.
struct Reaped {
  bool whole = true;
  std::set<std::string> keyless;  // providers whose keys are missing
};

// Reports missing keys separately and once: they are the most common reason, and only the user can fix it.
Result<> tell_keyless(App& app, const lease::ReapReport& report, Reaped& reaped) {
  RILLE_TRY(const std::vector<lease::Lease> open, app.engine->leases().all(false));
  std::set<std::string> keyless;
  for (const Error& e : report.errors) {
    const auto held = std::count_if(open.begin(), open.end(), [&](const auto& l) { return l.provider == e.provider; });
    if (e.kind != ErrorKind::auth || !held || !keyless.insert(e.provider).second) continue;
    if (reaped.keyless.contains(e.provider)) continue;
    Value event;
    event.set("event", "keyless").set("provider", e.provider).set("leases", held).set("why", e.message);
    tell(app, std::move(event));
  }
  reaped.keyless = std::move(keyless);
  return {};
}

Async<> reap(App& app, Reaped& reaped) {
  reaped.whole = false;
  RILLE_CO_TRY(lease::ReapReport report, co_await app.engine->reap(engine::ReapSpec()));
  reaped.whole = report.failed.empty() && report.errors.empty();
  RILLE_CO_CHECK(tell_keyless(app, report, reaped));
  auto lease = [&](const char* what, const lease::Lease& l) {
    Value event;
    event.set("event", what).set("lease", l.id).set("name", l.name).set("run", l.run).set("why", l.error);
    tell(app, std::move(event));
  };
  for (const auto& l : report.released) lease("released", l);
  for (const auto& l : report.failed) lease("not_released", l);
  if (report.errors.empty()) co_return success();
  Error e = report.errors.front();
  for (std::size_t i = 1; i < report.errors.size(); ++i)
    e.message += fmt::format("; {}: {}", report.errors[i].provider, report.errors[i].message);
  e.message = fmt::format("{}: {}; asked again within a minute", e.provider, e.message);
  co_return e;
}

// Starts each run's process in a new session: Ctrl-C in this terminal does not reach it, and it outlives this
// process.
class Processes {
 public:
  explicit Processes(App& app) : app_(app) {}

  Result<> start(const std::string& run, const std::string& script) {
    SubprocessOptions o;
    std::error_code ignored;
    std::string home = std::filesystem::absolute(app_.engine->home(), ignored).string();
    std::string folder = home + "/runs/" + run;
    std::filesystem::create_directories(folder, ignored);
    o.argv = {app_.self_exe, "resume", run};
    o.env = {{"RILLE_HOME", home}};
    o.directory = std::filesystem::path(script).parent_path().string();
    o.detached = true;
    o.out = o.err = SubprocessOptions::Output::file;
    o.out_path = o.err_path = folder + "/watch.log";
    RILLE_TRY(std::unique_ptr<Subprocess> process, Subprocess::start(*app_.loop, o));
    Subprocess* started = process.get();
    running_[++number_] = std::move(process);
    app_.loop->spawn(follow(this, number_, started, run));
    return {};
  }

 private:
  static Task<void> follow(Processes* self, int number, Subprocess* process, std::string run) {
    Result<ExitStatus> status = co_await process->wait();
    Result<engine::RunRow> row = self->app_.engine->run(run);
    Value event;
    event.set("event", "ended").set("run", run).set("state", row ? row->state : "unknown");
    if (row && row->error) event.set("error", error_to_value(*row->error));
    if (row && row->state == "running") event.set("state", status ? "died: " + status->text() : "died");
    tell(self->app_, std::move(event));
    auto ended = std::move(self->running_[number]);
    self->running_.erase(number);
    self->app_.loop->post([ended = std::shared_ptr<Subprocess>(std::move(ended))] {});
  }

  App& app_;
  int number_ = 0;
  std::map<int, std::unique_ptr<Subprocess>> running_;
};

Result<engine::RunLock> take_watch(const App& app) {
  std::string folder = app.engine->home() + "/watch", pid;
  Result<engine::RunLock> lock = engine::RunLock::take(folder, "watch");
  if (lock || lock.error().kind != ErrorKind::state) return lock;
  std::ifstream(folder + "/lock") >> pid;
  return make_error(ErrorKind::state,
                    fmt::format("process {} already runs rille watch for {}", pid, app.engine->home()),
                    "one rille watch is enough: it serves all runs of that folder");
}

struct WatchArguments {
  std::string gc = "5m", resume_within = "24h";
  std::string take;  // --take: id of a suspended run to hand over; the command then does only that
  int tries = 5;
  bool no_resume = false, once = false;
};

Result<engine::WatchOptions> read_options(const WatchArguments& arguments) {
  engine::WatchOptions o;
  RILLE_TRY(o.gc_ms, parse_duration_ms(arguments.gc));
  RILLE_TRY(o.resume_within_ms, parse_duration_ms(arguments.resume_within));
  if (o.gc_ms < 1000)
    return make_error(ErrorKind::invalid,
                      fmt::format("--gc {}: expected a duration of one second or more", arguments.gc));
  o.tries_max = arguments.tries;
  o.resumes = !arguments.no_resume;
  return o;
}

// Implements `rille watch --take RUN`.
Exit hand_over(App& app, const std::string& id) {
  Result<engine::RunRow> run = app.engine->run(id);
  if (!run) return fail(app, run.error());
  const std::int64_t now_us = app.loop->clock().wall_us();
  if (Result<> r = run_blocking(*app.loop, engine::hand_over(app.engine->journal(), run->id, now_us)); !r)
    return fail(app, r.error());
  if (app.json) app.terminal.out(Value().set("run", run->id).set("handed_over", true).to_json_pretty() + "\n");
  else app.terminal.out(fmt::format("{}: the watch goes on with it\n", run->id));
  if (!engine::RunLock::held(app.engine->home() + "/watch")) app.terminal.note("nothing watches now: rille watch");
  return Exit::ok;
}

engine::WatchWorld world_of(App& app, Processes& processes, Reaped& reaped) {
  engine::WatchWorld world;
  world.alive = [&app](const std::string& run) { return app.engine->alive(run); };
  world.start = [&processes](const std::string& run, const std::string& script) {
    return processes.start(run, script);
  };
  world.interrupt = [&app](const std::string& run) -> Result<> {
    RILLE_TRY(const engine::RunRow row, app.engine->run(run));
    return send_signal(app, row, SIGINT);
  };
  world.reap = [&app, &reaped] { return reap(app, reaped); };
  world.deliver = [&app] { app.engine->alerts()->deliver_soon(); };
  world.read = [](const std::string& path) { return store::read_file(path, script_bytes_max); };
  world.tell = [&app](const Value& event) { tell(app, event); };
  return world;
}

struct WatchCommand final : Command {
  WatchArguments arguments;
  void declare(Options& o) override {
    o.option("--gc", arguments.gc, "how often to clean up (5m)");
    o.option("--resume-within", arguments.resume_within, "do not resume runs that were silent for longer (24h)");
    o.option("--tries", arguments.tries, "resume a run at most this often without progress (5)").between(1, 1000);
    o.flag("--no-resume", arguments.no_resume, "start schedules only");
    o.option("--take", arguments.take, "RUN: only hand this suspended run to the watch, and end");
    o.flag("--once", arguments.once, "do what is due now, and end");
  }
  Exit run(App& app) override;
};

Exit WatchCommand::run(App& app) {
  if (!arguments.take.empty()) return hand_over(app, arguments.take);
  Result<engine::WatchOptions> options = read_options(arguments);
  if (!options) return fail_usage(app, options.error());
  Result<engine::RunLock> lock = take_watch(app);
  if (!lock) return fail(app, lock.error());
  Processes processes(app);
  struct AtEnd {  // tasks that wait for a process refer to `processes`, so destroy the tasks first
    App& app;
    ~AtEnd() { app.loop->abandon_tasks(); }
  } at_end{app};
  Reaped reaped;
  engine::Watch watch(*app.loop, app.engine->journal(), *options, world_of(app, processes, reaped));
  CancelSource stop;
  auto end = [&stop] { stop.cancel(make_error(ErrorKind::cancelled, "the watch ends")); };
  auto interrupted = [&end](int count) {
    // providers may be slow to answer; the journal has every action that was begun
    if (count > 1) _exit(status_of(Exit::interrupted));
    end();
  };
  Interrupts interrupts(*app.loop, nullptr, nullptr, interrupted, [&](int) { end(); });
  if (arguments.once) {
    Result<> done = run_blocking(*app.loop, watch.look());
    if (done) done = run_blocking(*app.loop, watch.reap());
    if (!done) return fail(app, done.error());
    return reaped.whole ? Exit::ok : Exit::cleanup_pending;  // the same exit code as `rille gc`
  }
  if (!app.json) app.terminal.note(fmt::format("watching {}; Ctrl-C ends it, and no run with it", app.engine->home()));
  Result<> ended = run_blocking(*app.loop, watch.run(stop.token()));
  if (!ended && !stop.cancelled()) return fail(app, ended.error());
  if (!app.json) app.terminal.note("the watch has ended; runs that it has started go on");
  return Exit::ok;
}

const Registered<WatchCommand> watch_row({Group::run, "watch",
                                          "stay: clean up, start schedules, resume runs that died"});

}  // namespace

}  // namespace rille::cli
