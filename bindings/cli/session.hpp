// What `rille FILE` and the prompt have in common: a run, its host, its log file, its hooks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bindings/cli/app.hpp"
#include "bindings/cli/interrupt.hpp"
#include "bindings/host/host.hpp"
#include "bindings/host/interrupter.hpp"

namespace rille::cli {

// What a run prints goes to the terminal and to <home>/runs/<id>/log.
class RunLog {
 public:
  ~RunLog();
  void open(const std::string& path);
  void write(std::string_view text);  // a full disk ends the log only

 private:
  int fd_ = -1;
};

constexpr std::size_t child_runs_max = 256;  // at a time

struct Session {
  App& app;
  RunLog log;
  host::Interrupter interrupter{1 + child_runs_max};
  std::unique_ptr<engine::Run> run;
  std::unique_ptr<host::LuaHost> host;
  std::optional<Result<Value>> result;
  Interrupts* signals = nullptr;
  bool hurried = false;  // Ctrl-C after the run's end: only the reaper is waited for

  explicit Session(App& a) : app(a) {}
  // What is still suspended refers to the run: it goes first.
  ~Session() { app.loop->abandon_tasks(); }
  Session(const Session&) = delete;
};

engine::RunHooks session_hooks(Session& s);
// Makes s.host for s.run. `open` adds verbs of the command's own.
Result<> make_host(Session& s, const std::string& directory, host::Rules rules, std::vector<lua_CFunction> open = {});
// Runs `main` to the run's end, then `then`, and returns its code. Meanwhile Ctrl-C cleans up, and a second one
// abandons; SIGTERM suspends. `title`: what is noted from the moment on at which that holds; "": nothing.
Exit drive(Session& s, FunctionRef main, const std::string& title, const std::function<Exit()>& then);
// The second Ctrl-C: no more Lua, not even its cleanup. This process is replaced by `rille release RUN --abandoned`, so
// that nothing of the run can go on; the rows alone are enough to give back what it holds.
[[noreturn]] void abandon(Session& s);
std::vector<std::string> abandon_words(const Session& s);  // that command
// Ends the process when something that was cancelled still computes after a second: it cannot be stopped from outside,
// and might never end (a kernel of the user's). What the journal has queued is written first.
void leave_unfinished(App& app, Exit code);
// SIGTERM, SIGHUP: stops here without unwinding; the journal has everything that is needed to go on.
[[noreturn]] void suspend(Session& s, int signal);

}  // namespace rille::cli
