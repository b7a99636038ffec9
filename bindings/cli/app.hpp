// What every command of `rille` needs: the loop, the engine of this RILLE_HOME, the terminal.
#pragma once

#include <memory>
#include <string>

#include "bindings/cli/exit.hpp"
#include "bindings/cli/terminal.hpp"
#include "runtime/workflow/engine/engine.hpp"

namespace rille::cli {

struct App {
  // Where the command was started; "/" when that folder is gone.
  static std::string folder();
  std::unique_ptr<Loop> loop;
  std::unique_ptr<engine::Engine> engine;  // opened by open_engine
  Terminal terminal;
  std::string home;  // RILLE_HOME
  std::string self_exe;
  bool json = false;
  bool trace = false;  // RILLE_TRACE=1
};

Result<> open_engine(App& app);
// Prints the error and gives its exit code.
Exit fail(App& app, const Error& error);
// The same for a command line that asks for what cannot be done: Exit::usage.
Exit fail_usage(App& app, const Error& error);

}  // namespace rille::cli
