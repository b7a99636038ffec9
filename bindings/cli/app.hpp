// Shared by every command of `rille`: the loop, the engine of this RILLE_HOME, the terminal.
#pragma once

#include <memory>
#include <string>

#include "bindings/cli/exit.hpp"
#include "bindings/cli/terminal.hpp"
#include "runtime/workflow/engine/engine.hpp"

namespace rille::cli {

struct App {
  // The working directory at the start; "/" if it no longer exists.
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
// Prints the error and returns its exit code.
Exit fail(App& app, const Error& error);
// Prints the error of an invalid command line and returns Exit::usage.
Exit fail_usage(App& app, const Error& error);

}  // namespace rille::cli
