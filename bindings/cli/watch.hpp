// `rille watch` and `rille schedule`: see watch_command.cpp.
#pragma once

#include <string>
#include <vector>

#include "bindings/cli/app.hpp"
#include "runtime/workflow/engine/schedules.hpp"

namespace rille::cli {

struct WatchArguments {
  std::string gc = "5m", resume_within = "24h";
  std::string take;  // a suspended run that is to be handed over, and nothing else
  int tries = 5;
  bool no_resume = false, once = false;
};
int watch_command(App& app, const WatchArguments& arguments);

int schedule_command(App& app);
int schedule_add_command(App& app, engine::Schedule schedule, const std::vector<std::string>& script_arguments);
int schedule_remove_command(App& app, const std::string& name);

}  // namespace rille::cli
