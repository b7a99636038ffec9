// What every command of `rille` shares: the event loop, the engine of this RILLE_HOME, the terminal.
#pragma once

#include <memory>
#include <string>

#include "bindings/cli/exit.hpp"
#include "bindings/cli/terminal.hpp"
#include "runtime/workflow/engine/engine.hpp"

namespace rille::cli {

struct App {
  // Returns the working directory in which the command was started; "/" if the directory no longer exists.
  static std::string folder();
  std::unique_ptr<Loop> loop;
  std::unique_ptr<engine::Engine> engine;  // null until open_engine
  Terminal terminal;
  std::string home;  // the folder RILLE_HOME: journal, cache, logs
  std::string self_exe;
  bool json = false;
  bool trace = false;  // errors show Lua tracebacks: the environment has RILLE_TRACE=1
};

Result<> open_engine(App& app);
// Prints the error and returns its exit code.
Exit fail(App& app, const Error& error);
// Prints the error of an invalid command line and returns Exit::usage.
Exit fail_usage(App& app, const Error& error);

}  // namespace rille::cli
