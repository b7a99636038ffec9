// `rille exec BOX -- CMD` and `rille attach BOX`: a program, or the prompt, on a machine that another run has rented.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bindings/cli/command.hpp"
#include "bindings/cli/runs.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/lease/volumes.hpp"

namespace rille::cli {

namespace {

// Finds the live machine that `what` names: a lease's id, or a name that only one lease has.
Result<lease::Lease> live_lease(const App& app, const std::string& what) {
  RILLE_TRY(std::vector<lease::Lease> leases, app.engine->leases().all(false));
  std::vector<std::string> names;
  std::vector<lease::Lease> found;
  for (lease::Lease& l : leases) {
    if (lease::is_volume(l)) continue;
    names.push_back(l.name);
    if (l.id == what || l.name == what) found.push_back(std::move(l));
  }
  if (found.empty()) {
    const std::string near = did_you_mean(what, names);
    return make_error(ErrorKind::invalid, fmt::format("nothing that is rented is called '{}'", what),
                      near.empty() ? "list what is rented with `rille leases`" : fmt::format("did you mean {}?", near));
  }
  if (found.size() > 1) {
    std::string all;
    for (const lease::Lease& l : found) all += fmt::format("{}{} of run {}", all.empty() ? "" : ", ", l.id, l.run);
    return make_error(ErrorKind::invalid, fmt::format("{} leases have the name '{}': {}", found.size(), what, all),
                      "name the lease by its id");
  }
  if (found.front().state != "live")
    return make_error(ErrorKind::state, fmt::format("'{}' is {}", found.front().name, found.front().state),
                      "wait until `rille leases` shows it as live");
  return std::move(found.front());
}

// A program that ended by a signal has the exit code of a shell.
Exit code_of_program(const Value& result) {
  const std::int64_t signal = result.integer("signal");
  return static_cast<Exit>(signal ? 128 + signal : result.integer("code"));
}

constexpr const char* exec_code = R"lua(
local given = rille.args()
local box = rille.rent(given.name, { adopt = given.lease })
return box:exec("exec", { argv = given.argv, cwd = given.cwd, check = false })
)lua";

struct ExecCommand final : Command {
  std::string box, cwd;
  std::vector<std::string> words;
  void declare(Options& o) override {
    o.option("BOX", box, "the name or id of what is rented, as `rille leases` shows it").required();
    o.option("--cwd", cwd, "the folder to run it in, below the machine's work folder");
    o.script_words(ScriptWords::mixed, words);
  }
  Exit run(App& app) override;
};

Exit ExecCommand::run(App& app) {
  if (words.empty())
    return fail_usage(app, make_error(ErrorKind::invalid, "rille exec: the program is missing",
                                      fmt::format("rille exec {} -- python3 train.py", box)));
  const std::string& program = words.front();
  std::error_code none;
  if (words.size() == 1 && program.find(' ') != std::string::npos && !std::filesystem::exists(program, none))
    return fail_usage(app, make_error(ErrorKind::invalid, "rille exec: one word with spaces is no program",
                                      fmt::format("a line for the shell: rille exec {} -- sh -c '{}'", box, program)));
  Result<lease::Lease> l = live_lease(app, box);
  if (!l) return fail(app, l.error());
  RunArguments arguments;
  arguments.code = exec_code;
  arguments.called = "exec";
  arguments.input.set("lease", l->id).set("name", l->name).set("argv", Value::Array(words.begin(), words.end()));
  if (!cwd.empty()) arguments.input.set("cwd", cwd);
  arguments.code_of = code_of_program;
  return run_to_end(app, arguments);
}

struct AttachCommand final : Command {
  std::string box;
  void declare(Options& o) override {
    o.option("BOX", box, "the name or id of what is rented, as `rille leases` shows it").required();
  }
  Exit run(App& app) override;
};

Exit AttachCommand::run(App& app) {
  Result<lease::Lease> l = live_lease(app, box);
  if (!l) return fail(app, l.error());
  const std::string first =
      fmt::format("box = rille.rent({}, {{ adopt = {} }})", Value(l->name).to_json(), Value(l->id).to_json());
  if (!app.json)
    app.terminal.note(fmt::format(
        "`box` is {} of run {}: box:exec, box:call, box:stage, box:get. It stays when you leave", l->name, l->run));
  return open_prompt(app, "", first);
}

const Registered<ExecCommand> exec_row({Group::machines, "exec",
                                        "a program on a rented machine: rille exec BOX -- CMD .."});
const Registered<AttachCommand> attach_row({Group::machines, "attach", "the prompt, with a rented machine as `box`"});

}  // namespace

}  // namespace rille::cli
