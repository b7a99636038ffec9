// What the commands that rehearse a script have in common: `rille simulate`, `rille plan`, `rille FILE --help`.
#pragma once

#include "bindings/cli/rehearsal.hpp"

namespace rille::cli {

// script_help.cpp: `rille FILE --help`
bool asks_for_help(const std::vector<std::string>& script_arguments);
Exit print_script_help(App& app, const std::string& file);

// invalid: no such script, or a word that is no option.
Result<Rehearsal> prepare_rehearsal(const App& app, const std::string& file, const std::vector<std::string>& words,
                                    const ScratchHome& home);

}  // namespace rille::cli
