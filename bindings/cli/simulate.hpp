// The commands that rehearse a script: `rille simulate` and `rille plan`.
#pragma once

#include "bindings/cli/rehearsal.hpp"

namespace rille::cli {

struct SimulateArguments {
  std::string file;
  std::vector<std::string> script_arguments;
  int runs = 100;
  std::uint64_t seed = 1;         // of the first run; the next one has the next
  std::string weather = "usual";  // calm usual rough
  std::int64_t deadline_ms = 0;   // 0: none
};
int simulate_command(App& app, const SimulateArguments& arguments);
// script_help.cpp
bool asks_for_help(const std::vector<std::string>& script_arguments);
int script_help_command(App& app, const std::string& file);
int plan_command(App& app, const std::string& file, const std::vector<std::string>& script_arguments);

// invalid: no such script, or a word that is no option.
Result<Rehearsal> prepare_rehearsal(const App& app, const std::string& file, const std::vector<std::string>& words,
                                    const ScratchHome& home);

}  // namespace rille::cli
