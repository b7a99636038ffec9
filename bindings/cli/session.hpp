// Shared by `rille FILE` and the REPL: a run, its Lua host, its log file, its hooks.
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

// The log of a run's output, <home>/runs/<id>/log; the output also goes to the terminal.
class RunLog {
 public:
  ~RunLog();
  void open(const std::string& path);
  void write(std::string_view text);  // if the disk is full, the log ends and the run continues

 private:
  int fd_ = -1;
};

constexpr std::size_t child_runs_max = 256;  // how many child runs may run at the same time

struct Session {
  App& app;
  RunLog log;
  host::Interrupter interrupter{1 + child_runs_max};
  std::unique_ptr<engine::Run> run;
  host::Grants grants = host::Grants::everything();
  std::unique_ptr<host::LuaHost> host;
  std::optional<Result<Value>> result;
  Interrupts* signals = nullptr;
  bool hurried = false;  // the user pressed Ctrl-C after the run's end: stop waiting for the reaper

  explicit Session(App& a) : app(a) {}
  // Suspended tasks refer to the run, so destroy the tasks before the run.
  ~Session() { app.loop->abandon_tasks(); }
  Session(const Session&) = delete;
};

engine::RunHooks session_hooks(Session& s);
// Creates s.host for s.run. `open` lists functions that add the command's own Lua verbs.
Result<> make_host(Session& s, const std::string& directory, host::Rules rules, std::vector<lua_CFunction> open = {});
// Runs `main` to the run's end, then calls `then` and returns the exit code that `then` returns. During the run the
// first Ctrl-C runs the cleanup, the second abandons the run, and SIGTERM suspends it. `title` is printed once the
// signal handlers are active; "": nothing is printed.
Exit drive(Session& s, FunctionRef main, const std::string& title, const std::function<Exit()>& then);
// Called on the second Ctrl-C: runs no more Lua code, not even cleanup. Replaces this process by `rille release RUN
// --abandoned`, so that nothing of the run can continue; the journal's rows are enough to release the run's machines.
[[noreturn]] void abandon(Session& s);
std::vector<std::string> abandon_words(const Session& s);  // the command line `rille release RUN --abandoned`
// Ends the process if cancelled work is still computing after a second: such work (a user's kernel) cannot be stopped
// and might never end. Writes queued journal rows first.
void leave_unfinished(App& app, Exit code);
// Called on SIGTERM and SIGHUP: exits without unwinding the script; the journal has everything needed to resume the
// run.
[[noreturn]] void suspend(Session& s, int signal);

}  // namespace rille::cli
