// The list of runs: `rille ps` and `rille rm`.
#pragma once

#include "bindings/cli/app.hpp"

namespace rille::cli {

struct PsArguments {
  int limit = 20;
  bool with_children = false;
  std::string state;  // those only, as it is shown; "": all
};
int ps_command(App& app, const PsArguments& wanted);                 // query_commands.cpp
int remove_command(App& app, const std::vector<std::string>& runs);  // remove_command.cpp

}  // namespace rille::cli
