// `rille cancel`, `rille suspend`: what Ctrl-C and SIGTERM do, from another terminal; and a run that nobody runs now is
// cancelled by going back to where it stood, for its cleanup.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "bindings/cli/app.hpp"
#include "runtime/core/base/run_state.hpp"

namespace rille::cli {

namespace {

constexpr int runs_looked_at = 1000;

// Of a program that embeds Rille, a signal could end more than the run.
bool is_command(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  std::string words((std::istreambuf_iterator<char>(file)), {});
  for (std::size_t at = 0, n = 0; at < words.size() && n < 4; ++n) {  // a bundle's loader stands before the command
    std::string word = words.c_str() + at;
    if (std::filesystem::path(word).filename() == "rille") return true;
    at += word.size() + 1;
  }
  return false;
}

Result<> send(const App& app, const engine::RunRow& row, int signal) {
  if (!row.parent.empty())
    return make_error(ErrorKind::state, fmt::format("run {} is run by {}, which waits for it", row.id, row.parent),
                      fmt::format("name that one: rille cancel {}", row.parent));
  if (row.pid <= 0 || !is_command(row.pid))
    return make_error(ErrorKind::state,
                      fmt::format("run {} is run by process {}, which is no `rille` command", row.id, row.pid),
                      "end it in that program: Run:cancel, or as it wants to be ended");
  if (!app.engine->alive(row.id) || kill(static_cast<pid_t>(row.pid), signal) != 0)
    return make_error(ErrorKind::state, fmt::format("run {} has just come to its end", row.id),
                      fmt::format("see it with `rille show {}`", row.id));
  return {};
}

int told(App& app, const engine::RunRow& row, const char* what, const std::string& note) {
  if (app.json) app.terminal.out(Value().set("run", row.id).set(what, true).to_json_pretty() + "\n");
  else app.terminal.note(note);
  return 0;
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

int cancel_command(App& app, const std::string& run) {
  Result<engine::RunRow> row = open_run(app, run, true);
  if (!row) return fail(app, row.error());
  if (app.engine->alive(row->id)) {
    if (Result<> sent = send(app, *row, SIGINT); !sent) return fail(app, sent.error());
    return told(app, *row, "cancelled",
                fmt::format("run {} is told to end, and cleans up: rille logs -f {}", row->id, row->id));
  }
  if (row->mode == "session") return abandon_command(app, row->id) == 130 ? 0 : 3;  // it has no script to go back to
  RunArguments arguments;
  arguments.resume = row->id;
  arguments.cancel = true;
  return run_command(app, arguments);
}

int suspend_command(App& app, const std::string& run) {
  Result<engine::RunRow> row = open_run(app, run, true);
  if (!row) return fail(app, row.error());
  if (!app.engine->alive(row->id))
    return fail(app,
                make_error(ErrorKind::state,
                           fmt::format("no process runs {}: it is {}", row->id,
                                       row->state == "running" ? "interrupted" : row->state),
                           run_has_ended(row->state) ? "" : fmt::format("continue with: rille resume {}", row->id)));
  if (Result<> sent = send(app, *row, SIGTERM); !sent) return fail(app, sent.error());
  return told(app, *row, "suspended", fmt::format("run {} stops; continue with: rille resume {}", row->id, row->id));
}

}  // namespace rille::cli
