// Functions on runs that several commands share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/app.hpp"

namespace rille::cli {

// stop_commands.cpp: finds a run by its id, a unique prefix, or "last": the newest run that has not ended, preferably
// one with a live process (alive = true) or without one.
Result<engine::RunRow> open_run(const App& app, const std::string& id, bool alive);

struct RunArguments {
  std::string file;                 // "" for -e
  std::optional<std::string> code;  // the code of -e
  std::vector<std::string> script_arguments;
  std::string tag;        // the budget that the run counts against
  std::string deadline;   // "2h"; "" = none
  std::string resume;     // a run id; with code: a session that the code continues and ends
  std::string with;       // the file that replaces the pinned script of `resume`
  std::string fork_from;  // a key: a new run is forked from `resume` there
  bool rerent = false;    // the fork rents new machines for leases that were open at that key
  bool retry_failed = false;
  bool cancel = false;  // resume for cleanup only
};
// run_command.cpp: starts or resumes one run and drives it to its end.
Exit run_to_end(App& app, const RunArguments& arguments);
// "--steps 500 --flag --x=1" -> {steps="500", flag=true, x="1"}. invalid: a word is not an option.
Result<Value> parse_script_arguments(const std::vector<std::string>& words);

// script_help.cpp: `rille FILE --help`; `script_arguments` are the words after FILE.
bool asks_for_help(const std::vector<std::string>& script_arguments);
Exit print_script_help(App& app, const std::string& file);

// rewrite_commands.cpp: forks the run, or removes its failure, as the arguments say; returns the id of the run to
// resume.
Result<std::string> go_back(App& app, const RunArguments& arguments);

// release_commands.cpp: releases a run's machines, in the process that replaces the run's on the second Ctrl-C.
Exit abandon_run(App& app, const std::string& run);

// repl.cpp: the REPL. `resume`: a session's id; "": a new session.
Exit open_prompt(App& app, const std::string& resume);

// cost_commands.cpp
std::string cost_table(const std::vector<lease::Lease>& leases, std::int64_t now_us);

}  // namespace rille::cli
