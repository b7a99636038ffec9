// Shared by `rille FILE` and the REPL: a run, its host, its log file, its hooks.
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

// A run's output goes to the terminal and to <home>/runs/<id>/log.
class RunLog {
 public:
  ~RunLog();
  void open(const std::string& path);
  void write(std::string_view text);  // on a full disk the log ends, the run continues

 private:
  int fd_ = -1;
};

constexpr std::size_t child_runs_max = 256;  // limit on child runs that run at the same time

struct Session {
  App& app;
  RunLog log;
  host::Interrupter interrupter{1 + child_runs_max};
  std::unique_ptr<engine::Run> run;
  std::unique_ptr<host::LuaHost> host;
  std::optional<Result<Value>> result;
  Interrupts* signals = nullptr;
  bool hurried = false;  // Ctrl-C after the run's end: stop waiting for the reaper

  explicit Session(App& a) : app(a) {}
  // Suspended tasks refer to the run, so they are destroyed first.
  ~Session() { app.loop->abandon_tasks(); }
  Session(const Session&) = delete;
};

engine::RunHooks session_hooks(Session& s);
// Creates s.host for s.run. `open` adds the command's own verbs.
Result<> make_host(Session& s, const std::string& directory, host::Rules rules, std::vector<lua_CFunction> open = {});
// Runs `main` to the run's end, then calls `then` and returns its exit code. Meanwhile the first Ctrl-C runs the
// cleanup, the second abandons the run, and SIGTERM suspends it. `title`: printed once the signal handlers are active;
// "": nothing.
Exit drive(Session& s, FunctionRef main, const std::string& title, const std::function<Exit()>& then);
// The second Ctrl-C: no more Lua, not even cleanup. Replaces this process by `rille release RUN --abandoned`, so that
// nothing of the run can continue; the journal's rows are enough to release its machines.
[[noreturn]] void abandon(Session& s);
std::vector<std::string> abandon_words(const Session& s);  // the words of the `rille release` command
// Ends the process if cancelled work still computes after a second: it cannot be stopped from outside and might never
// end (a user's kernel). Writes the journal's queue first.
void leave_unfinished(App& app, Exit code);
// SIGTERM, SIGHUP: exits without unwinding; the journal has everything needed to resume.
[[noreturn]] void suspend(Session& s, int signal);

}  // namespace rille::cli
