// `rille rm`: removes runs that have ended.
#include <fmt/format.h>

#include "bindings/cli/command.hpp"
#include "runtime/workflow/engine/remove.hpp"

namespace rille::cli {

namespace {

struct RemoveCommand final : Command {
  std::vector<std::string> runs;
  void declare(Options& o) override {
    o.option("RUN", runs, "their ids, unique beginnings of ids, or `last`").required();
  }
  Exit run(App& app) override;
};

Exit RemoveCommand::run(App& app) {
  Value::Array removed, errors;
  for (const std::string& name : runs) {
    Result<engine::RunRow> row = app.engine->run(name);
    Result<> gone = row ? run_blocking(*app.loop, engine::remove_run(*app.engine, row->id)) : Result<>(row.error());
    if (gone) removed.push_back(row->id);
    else errors.push_back(error_to_value(gone.error()));
    if (app.json) continue;
    if (gone) app.terminal.note("removed " + row->id);
    else fail(app, gone.error());
  }
  const Exit code = errors.empty() ? Exit::ok : Exit::script;
  if (app.json && removed.empty() && runs.size() == 1)
    app.terminal.out(Value().set("error", std::move(errors.front())).to_json_pretty() + "\n");
  else if (app.json)
    app.terminal.out(Value().set("removed", std::move(removed)).set("errors", std::move(errors)).to_json_pretty() +
                     "\n");
  return code;
}

const Registered<RemoveCommand> remove_row({Group::rewrite, "rm",
                                            "remove ended runs: their record and files, not what they cost"});

}  // namespace

}  // namespace rille::cli
