// `rille fork`, `rille invalidate`, `rille resume --retry-failed`: continue a run from an earlier point.
#include <fmt/format.h>

#include "bindings/cli/command.hpp"
#include "bindings/cli/runs.hpp"

namespace rille::cli {

namespace {

void tell_cut(App& app, const engine::Cut& cut) {
  if (!cut.because_of.empty())
    app.terminal.note(
        fmt::format("the lease '{}' was open there and is not now: going back to before its rent", cut.because_of));
  if (!cut.rented_anew.empty())
    app.terminal.note(fmt::format("rented anew when first used: {}", fmt::join(cut.rented_anew, ", ")));
  app.terminal.note(
      fmt::format("{} entries kept, {} left out, from {} ({}) on", cut.kept, cut.dropped, cut.key, cut.source));
}

struct ForkCommand final : Command {
  RunArguments arguments;
  void declare(Options& o) override {
    o.option("RUN", arguments.resume, names_a_run).required();
    o.option("--from", arguments.fork_from, "the first entry to redo: a key that `rille show` prints").required();
    o.flag("--rerent", arguments.rerent,
           "keep what was done on leases that were open then; the fork rents machines of its own");
    o.option("--with", arguments.with, "continue with this script, if it agrees with the record");
  }
  Exit run(App& app) override { return run_to_end(app, arguments); }
};

struct InvalidateCommand final : Command {
  std::string id, key;
  void declare(Options& o) override {
    o.option("RUN", id, names_a_run).required();
    o.option("KEY", key, "a key that `rille show` prints").required();
  }
  Exit run(App& app) override;
};

Exit InvalidateCommand::run(App& app) {
  Result<engine::Cut> cut = run_blocking(*app.loop, app.engine->invalidate(id, key));
  if (!cut) return fail(app, cut.error());
  if (app.json) {
    app.terminal.out(Value()
                         .set("run", cut->run)
                         .set("key", cut->key)
                         .set("kept", cut->kept)
                         .set("dropped", cut->dropped)
                         .to_json_pretty() +
                     "\n");
    return Exit::ok;
  }
  tell_cut(app, *cut);
  app.terminal.out(fmt::format("continue with: rille resume {}\n", cut->run));
  return Exit::ok;
}

const Registered<ForkCommand> fork_row({Group::rewrite, "fork", "a new run that begins with the record of another",
                                        Opens::nothing});
const Registered<InvalidateCommand> invalidate_row({Group::rewrite, "invalidate",
                                                    "forget an entry of the record and all that follow it"});

}  // namespace

Result<std::string> go_back(App& app, const RunArguments& arguments) {
  if (!arguments.fork_from.empty()) {
    auto forked = app.engine->fork(arguments.resume, arguments.fork_from, arguments.rerent);
    Result<engine::Cut> cut = run_blocking(*app.loop, std::move(forked));
    if (!cut) return cut.error();
    if (!app.json) tell_cut(app, *cut);
    return cut->run;
  }
  RILLE_TRY(std::string key, app.engine->failed_at(arguments.resume));
  Result<engine::Cut> cut = run_blocking(*app.loop, app.engine->invalidate(arguments.resume, key));
  if (!cut) return cut.error();
  if (!app.json) tell_cut(app, *cut);
  return cut->run;
}

}  // namespace rille::cli
