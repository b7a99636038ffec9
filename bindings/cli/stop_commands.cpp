// `rille cancel`, `rille suspend`, `rille signal`: control a run from another terminal. Cancel sends SIGINT to the
// run's process, suspend sends SIGTERM; a run without a process is cancelled by resuming it for cleanup only.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "bindings/cli/command.hpp"
#include "bindings/cli/runs.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/run_state.hpp"

namespace rille::cli {

namespace {

constexpr int runs_looked_at = 1000;

// Whether process `pid` is the command `rille`.
bool is_command(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  std::string words((std::istreambuf_iterator<char>(file)), {});
  // The dynamic loader of a bundle may be started with the command as an argument; another program with this word, such
  // as `vim rille`, is not the command.
  for (std::size_t at = 0, n = 0; at < words.size() && n < 4; ++n) {
    const std::string word = words.c_str() + at;
    const std::string name = std::filesystem::path(word).filename();
    if (name == "rille") return true;
    if (n == 0 && !name.starts_with("ld-linux")) return false;
    at += word.size() + 1;
  }
  return false;
}

}  // namespace

Result<> send_signal(const App& app, const engine::RunRow& row, int signal) {
  if (!row.parent.empty())
    return make_error(ErrorKind::state,
                      fmt::format("run {} was started by run {}, which waits for it", row.id, row.parent),
                      fmt::format("cancel that run: rille cancel {}", row.parent));
  if (row.pid <= 0 || !is_command(row.pid))
    return make_error(
        ErrorKind::state,
        fmt::format("run {} is run by process {}, which is a program with Rille inside and not the `rille` command",
                    row.id, row.pid),
        "cancel the run in that program, for example with Run:cancel");
  if (!app.engine->alive(row.id) || kill(static_cast<pid_t>(row.pid), signal) != 0)
    return make_error(ErrorKind::state, fmt::format("run {} has just ended", row.id),
                      fmt::format("see it with `rille show {}`", row.id));
  return {};
}

namespace {

Exit told(App& app, const engine::RunRow& row, const char* what, const std::string& note) {
  if (app.json) app.terminal.out(Value().set("run", row.id).set(what, true).to_json_pretty() + "\n");
  else app.terminal.note(note);
  return Exit::ok;
}

}  // namespace

Result<engine::RunRow> open_run(const App& app, const std::string& id, bool alive) {
  if (id != "last") return app.engine->run(id);
  RILLE_TRY(auto rows, app.engine->runs(runs_looked_at));
  auto it = std::find_if(rows.begin(), rows.end(), [&](const engine::RunRow& row) {
    return !run_has_ended(row.state) && app.engine->alive(row.id) == alive;
  });
  if (it == rows.end())
    it = std::find_if(rows.begin(), rows.end(), [](const engine::RunRow& row) { return !run_has_ended(row.state); });
  return it == rows.end() ? app.engine->run(id) : Result<engine::RunRow>(std::move(*it));
}

namespace {

struct CancelCommand final : Command {
  std::string id;
  void declare(Options& o) override { o.option("RUN", id, names_a_run).required(); }
  Exit run(App& app) override;
};

struct SuspendCommand final : Command {
  std::string id;
  void declare(Options& o) override { o.option("RUN", id, names_a_run).required(); }
  Exit run(App& app) override;
};

struct SignalCommand final : Command {
  std::string id, name, value;
  void declare(Options& o) override {
    o.option("RUN", id, names_a_run).required();
    o.option("NAME", name, "of the signal").required();
    o.option("VALUE", value, "JSON, or a string");
  }
  Exit run(App& app) override;
};

Exit CancelCommand::run(App& app) {
  Result<engine::RunRow> row = open_run(app, id, true);
  if (!row) return fail(app, row.error());
  if (app.engine->alive(row->id)) {
    if (Result<> sent = send_signal(app, *row, SIGINT); !sent) return fail(app, sent.error());
    return told(app, *row, "cancelled",
                fmt::format("run {} is asked to end, and cleans up: rille logs -f {}", row->id, row->id));
  }
  if (row->mode == "session")  // a session has no script that could be resumed for cleanup
    return abandon_run(app, row->id) == Exit::interrupted ? Exit::ok : Exit::cleanup_pending;
  RunArguments arguments;
  arguments.resume = row->id;
  arguments.cancel = true;
  return run_to_end(app, arguments);
}

Exit SuspendCommand::run(App& app) {
  Result<engine::RunRow> row = open_run(app, id, true);
  if (!row) return fail(app, row.error());
  if (!app.engine->alive(row->id))
    return fail(app,
                make_error(ErrorKind::state,
                           fmt::format("no process runs {}: it is {}", row->id,
                                       row->state == "running" ? "interrupted" : row->state),
                           run_has_ended(row->state) ? "" : fmt::format("continue with: rille resume {}", row->id)));
  if (Result<> sent = send_signal(app, *row, SIGTERM); !sent) return fail(app, sent.error());
  return told(app, *row, "suspended", fmt::format("run {} stops; continue with: rille resume {}", row->id, row->id));
}

// The signals that the run waits for now.
std::vector<std::string> waited_for(const App& app, const std::string& run) {
  std::vector<std::string> names;
  const auto entries = app.engine->entries(run);
  for (const Value& e : entries ? *entries : std::vector<Value>())
    if (e.text("kind") == "signal" && e.text("state") == "started") names.push_back(e.text("name"));
  return names;
}

// A signal that the run does not wait for is kept, as it may wait for it later: so a misspelt name is only a warning.
std::string when_it_is_got(const std::string& run, const std::string& name, const std::vector<std::string>& waited) {
  const std::string gets = fmt::format("run {} gets '{}' when it waits for it", run, name);
  if (waited.empty() || std::find(waited.begin(), waited.end(), name) != waited.end()) return gets;
  const std::string near = did_you_mean(name, waited);
  return fmt::format("warning: run {} waits for '{}' now, not for '{}', which is kept until it does{}", run,
                     fmt::join(waited, "', '"), name,
                     near.empty() ? "" : fmt::format("\n  hint: did you mean `rille signal {} {}`?", run, near));
}

Exit SignalCommand::run(App& app) {
  if (value.empty()) value = "true";
  // The signal's value: valid JSON is parsed; any other text is a string.
  Result<Value> payload = Value::from_json(value);
  Result<engine::RunRow> row = open_run(app, id, true);
  if (!row) return fail(app, row.error());
  Result<> r = run_blocking(*app.loop, app.engine->signal(row->id, name, payload ? *payload : Value(value)));
  if (!r) return fail(app, r.error());
  const std::vector<std::string> waited = waited_for(app, row->id);
  if (!app.json) app.terminal.note(when_it_is_got(row->id, name, waited));
  else
    app.terminal.out(Value()
                         .set("waits_for", Value::Array(waited.begin(), waited.end()))
                         .set("run", row->id)
                         .set("signal", name)
                         .set("value", payload ? *payload : Value(value))
                         .to_json_pretty() +
                     "\n");
  return Exit::ok;
}

const Registered<CancelCommand> cancel_row({Group::rewrite, "cancel",
                                            "end a run: it cleans up and releases what it has rented"});
const Registered<SuspendCommand> suspend_row({Group::rewrite, "suspend",
                                              "stop a run where it stands; `rille resume` continues it"});
const Registered<SignalCommand> signal_row({Group::rewrite, "signal", "send a value to a run that waits for it"});

}  // namespace

}  // namespace rille::cli
