// `rille fork`, `rille invalidate`, `rille resume --retry-failed`: runs that go on from an earlier place.
#include <fmt/format.h>

#include "bindings/cli/app.hpp"

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

}  // namespace

int invalidate_command(App& app, const std::string& run, const std::string& key) {
  Result<engine::Cut> cut = run_blocking(*app.loop, app.engine->invalidate(run, key));
  if (!cut) return fail(app, cut.error());
  if (app.json) {
    app.terminal.out(Value()
                         .set("run", cut->run)
                         .set("key", cut->key)
                         .set("kept", cut->kept)
                         .set("dropped", cut->dropped)
                         .to_json_pretty() +
                     "\n");
    return 0;
  }
  tell_cut(app, *cut);
  app.terminal.out(fmt::format("continue with: rille resume {}\n", cut->run));
  return 0;
}

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
