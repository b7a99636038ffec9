// Operations on runs that several commands share: find, start, resume and release.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/app.hpp"

namespace rille::cli {

// Finds a run by its id, a unique prefix, or "last": the newest run that has not ended. "last" prefers a run with a
// live process if `alive` is true, else one without. Defined in stop_commands.cpp.
Result<engine::RunRow> open_run(const App& app, const std::string& id, bool alive);

// The run's state as people see it: "interrupted" for a running one whose process is gone. Defined in
// look_commands.cpp.
std::string shown_state(const App& app, const engine::RunRow& run);

// Sends the signal to the run's process. Error state: that process is not the command `rille` (a signal to a program
// that embeds Rille, or to what an altered row names, could end more than the run), another run waits for this one, or
// the run has ended. Defined in stop_commands.cpp.
Result<> send_signal(const App& app, const engine::RunRow& run, int signal);

struct RunArguments {
  std::string file;                 // the script's path; "" for -e
  std::optional<std::string> code;  // the argument of -e
  std::string called = "-e";        // the script's name in `rille ps`, if `code` is set
  Value input;                      // the run's arguments, if `code` is set
  // The exit code for the result of `code`; null: 0.
  std::function<Exit(const Value&)> code_of = nullptr;
  std::vector<std::string> script_arguments;
  std::string tag;  // the tag whose budget pays for the run
  // words of --grant; empty: the file beside the script applies, or without one everything is granted
  std::vector<std::string> grants;
  std::string deadline;   // time limit of the run, "2h"; "": none
  std::string resume;     // id of the run to resume; together with `code`: a session that the code continues and ends
  std::string with;       // path of a file that replaces the pinned script of the run `resume`
  std::string fork_from;  // a step's key: a new run is forked from the run `resume` at that key
  bool rerent = false;    // the fork rents new machines for the leases that were open at `fork_from`
  bool retry_failed = false;
  bool cancel = false;  // resumes the run only to clean up
};
// Starts or resumes one run and drives it to its end. Defined in run_command.cpp.
Exit run_to_end(App& app, const RunArguments& arguments);
// Reads "--steps 500 --flag --x=1" into {steps="500", flag=true, x="1"}. invalid: a word is not an option.
Result<Value> parse_script_arguments(const std::vector<std::string>& words);

// For `rille FILE --help`, in script_help.cpp; `script_arguments` are the words after FILE.
bool asks_for_help(const std::vector<std::string>& script_arguments);
Exit print_script_help(App& app, const std::string& file);

// Forks the run or removes its recorded failure, depending on the arguments; returns the id of the run to resume.
// Defined in rewrite_commands.cpp.
Result<std::string> go_back(App& app, const RunArguments& arguments);

// Releases the machines of a run whose process has ended: after a second Ctrl-C (see abandon()), or after its process
// died. Defined in release_commands.cpp.
Exit abandon_run(App& app, const std::string& run);

// Runs the REPL. `resume`: id of the session to continue; "": a new session. `first`: an entry that is run before the
// user's. Defined in repl.cpp.
Exit open_prompt(App& app, const std::string& resume, const std::string& first = {});

// The table of `rille cost`: what each machine cost. Defined in cost_commands.cpp.
std::string cost_table(const std::vector<lease::Lease>& leases, std::int64_t now_us);

}  // namespace rille::cli
