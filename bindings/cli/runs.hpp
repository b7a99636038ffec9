// What several commands do with a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/app.hpp"

namespace rille::cli {

// stop_commands.cpp: a run as people name it. "last" is the newest that has not ended, if there is one, and that is
// `alive` (a process runs it), or is not.
Result<engine::RunRow> open_run(const App& app, const std::string& id, bool alive);

struct RunArguments {
  std::string file;                 // "" for -e
  std::optional<std::string> code;  // of -e
  std::vector<std::string> script_arguments;
  std::string tag;        // the budget it counts against
  std::string deadline;   // "2h"; "" = none
  std::string resume;     // a run id; with code: a session, which the code continues and ends
  std::string with;       // the file that replaces the pinned script of `resume`
  std::string fork_from;  // a key: a new run is forked from `resume` there
  bool rerent = false;    // the fork rents machines of its own for leases that were open there
  bool retry_failed = false;
  bool cancel = false;  // resume for the cleanup only
};
// run_command.cpp: one run from its start, or from where it was, to its end.
Exit run_to_end(App& app, const RunArguments& arguments);
// "--steps 500 --flag --x=1" -> {steps="500", flag=true, x="1"}. invalid: a word that is no option.
Result<Value> parse_script_arguments(const std::vector<std::string>& words);

// script_help.cpp: `rille FILE --help`, whose words follow FILE.
bool asks_for_help(const std::vector<std::string>& script_arguments);
Exit print_script_help(App& app, const std::string& file);

// rewrite_commands.cpp: forks, or forgets a failure, as the arguments say: gives the id of the run to resume.
Result<std::string> go_back(App& app, const RunArguments& arguments);

// release_commands.cpp: what the second Ctrl-C leaves to a new process.
Exit abandon_run(App& app, const std::string& run);

// repl.cpp: the prompt. `resume`: a session; "": a new one.
Exit open_prompt(App& app, const std::string& resume);

// cost_commands.cpp
std::string cost_table(const std::vector<lease::Lease>& leases, std::int64_t now_us);

}  // namespace rille::cli
