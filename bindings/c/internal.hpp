// Shared by the files of the C API: the handles behind rille.h, the checks of arguments and threads, and the conversion
// of errors. Everything except Gate and the error functions may be used only on the runtime's thread.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c/fork_mark.hpp"
#include "bindings/c/holdings.hpp"
#include "bindings/c/rille.h"
#include "bindings/host/host.hpp"
#include "bindings/host/interrupter.hpp"
#include "runtime/workflow/engine/engine.hpp"

struct rille_error {
  rille::Error error;
  std::string json;                    // filled by rille_error_to_json
  std::unique_ptr<rille_error> cause;  // filled by rille_error_cause
};

namespace rille::capi {

rille_error* give(Error error) noexcept;  // the host program owns the result and frees it
Error take(rille_error* error) noexcept;  // frees the rille_error and returns its Error; null gives a `cancelled` error
std::unique_ptr<rille_error> hold(Error error);
char* give_text(const std::string& text);  // a copy that the host program frees with rille_free

rille_error* give_exception(const std::exception& e) noexcept;

// Runs `body` and converts its error or exception to a rille_error.
template <class F>
rille_error* guarded(F&& body) noexcept {
  try {
    Result<> r = body();
    return r ? nullptr : give(std::move(r).error());
  } catch (const std::exception& e) { return give_exception(e); }
}

// Copies only the fields that exist in the host program's version of the struct; all other fields get their defaults.
template <class T>
Result<T> read_options(const T* given, const char* type, void (*init)(T*, std::size_t)) {
  T options;
  init(&options, sizeof options);
  if (!given) return options;
  if (given->struct_size < sizeof given->struct_size)
    return make_error(ErrorKind::invalid, std::string(type) + ".struct_size = " + std::to_string(given->struct_size),
                      std::string("set it up with ") + type + "_init(&options, sizeof options)");
  std::memcpy(&options, given, std::min(given->struct_size, sizeof options));
  return options;
}

// Lets completions, which may outlive the runtime, reach the runtime's loop.
struct Gate {
  std::mutex mutex;
  Loop* loop = nullptr;  // null: the runtime was destroyed
};

struct HostFunction {
  std::string module, name, full_name;  // such as "app", "greet", "app.greet"
  rille_effect effect = RILLE_STEP;
  rille_function function = nullptr;
  void* payload = nullptr;
};
using Modules = std::map<std::string, std::map<std::string, HostFunction>>;

class Bridge;

// Makes the registered modules available to `require` in this Lua host. The runtime and the bridge must outlive `host`;
// call bridge->close() before the host ends.
Result<std::unique_ptr<Bridge>> install_modules(host::LuaHost& host, rille_runtime* runtime);

}  // namespace rille::capi

struct rille_runtime {
  ~rille_runtime();

  pid_t pid = getpid();
  rille::capi::ForkMark fork_mark;
  std::atomic<std::thread::id> owner{std::this_thread::get_id()};
  bool turning = false, closed = false;
  int script_calls = 0;  // calls of rille_script_call that have not returned
  rille_log_function log = nullptr;
  void* log_payload = nullptr;
  bool full_tracebacks = false;
  int runs_max = 0;
  rille::host::Allocator allocator;
  int pending = 0;  // number of rille_signal, rille_release and rille_script_begin calls in progress
  std::shared_ptr<rille::capi::Gate> gate = std::make_shared<rille::capi::Gate>();
  std::shared_ptr<rille::capi::Holdings> holdings = std::make_shared<rille::capi::Holdings>(gate);
  std::unique_ptr<rille::host::Interrupter> interrupter;
  std::shared_ptr<rille::host::Watchdog> watchdog = rille::host::Watchdog::of_process();  // keeps its thread
  uv_async_t* wake = nullptr;  // wakes the loop for an interrupt; closed at the end, then freed by the loop
  std::unique_ptr<rille::Loop> loop;
  std::shared_ptr<rille::host::Turn> turn;  // shared by all runs and their child runs
  std::unique_ptr<rille::engine::Engine> engine;
  rille::capi::Modules modules;
  std::vector<std::shared_ptr<rille_run>> runs;  // active runs, and ended runs that the host program has not freed
  std::vector<std::shared_ptr<rille_script>> scripts;  // also freed scripts whose calls still clean up

  void take_interrupt();
  int running() const;
  void forget(rille_run* run);
  void abandon();  // suspends active runs at their current state
  void say(rille_log_level level, const std::string& line) const {
    if (log) log(level, line.data(), line.size(), log_payload);
  }
};

struct rille_run : std::enable_shared_from_this<rille_run> {
  rille_run();
  ~rille_run();
  rille_runtime* runtime = nullptr;
  rille_state state = RILLE_RUN_NEW;
  bool resumed = false, started = false, settled = false, freed = false;
  std::string id, script, name, source, directory;
  rille::Value args;
  rille_run_options options{};  // its texts belong to the caller
  rille::host::Grants grants;   // given by the host program
  bool grants_given = false;
  rille::engine::RunLimits money;  // of leases and money: child runs share them
  std::unique_ptr<rille::engine::Run> run;
  std::vector<rille::engine::Run*> children;  // active runs that the script has started, and their own
  std::unique_ptr<rille::capi::Bridge> bridge;
  std::unique_ptr<rille::host::LuaHost> host;
  rille::FunctionRef main = 0;
  std::shared_ptr<rille::host::Spending> spent = std::make_shared<rille::host::Spending>();  // with its child runs
  std::shared_ptr<rille::MemoryUse> memory;  // shared with its child runs, as `disk`; null: no limit
  std::shared_ptr<rille::DiskUse> disk;
  rille::MemoryHeld result_held;  // counts `result`
  std::unique_ptr<rille::Timer> wall, cleanup;
  std::optional<rille::Error> cancel_reason;
  std::string result;
  std::unique_ptr<rille_error> error;
  void (*done)(rille_run*, void*) = nullptr;
  void* done_payload = nullptr;

  void cancel(rille::Error reason);
  void stop(rille::Error reason);  // cancels a run in any state
  bool can_resume() const;         // if it were suspended now: it is recorded in a journal that outlives the runtime
  void finish(rille::Result<rille::Value> outcome);
  void settle();  // called after the script's last stack frame has ended: frees the script, notifies the host program
  void close();   // destroys first `host`, then `run`
};

namespace rille::capi {

// Fails unless called on the owner's thread, in the process that created the runtime. Call::turns is for functions that
// turn the loop: these also fail inside a callback.
enum class Call { plain, turns };
Result<> check_call(const rille_runtime* runtime, Call kind = Call::plain);
Error null_argument(const char* function, const char* what);

// On a thread that does not own the runtime: leaves `free` to the next turn and returns true. In a forked child: true.
template <class F>
bool left_to_owner(rille_runtime* runtime, F&& free) noexcept {
  if (runtime->fork_mark.in_child()) return true;
  if (runtime->owner.load() == std::this_thread::get_id()) return false;
  try {
    runtime->loop->post_from_thread(std::forward<F>(free));
  } catch (const std::bad_alloc&) {}
  return true;
}

// A run with checked options, a Lua state and a compiled script; the runtime does not know it yet. A rille_script has
// such a run, which is never started.
Result<std::shared_ptr<rille_run>> prepare_source(rille_runtime* runtime, const char* name, std::string source,
                                                  const rille_run_options* options);
Result<std::shared_ptr<rille_run>> prepare_file(rille_runtime* runtime, const char* path,
                                                const rille_run_options* options);
engine::RunHooks hooks(rille_run* run);  // reports to the callbacks in its options

// Marks the runtime's loop as turning while the object exists. Lua gives way after budget_ms; -1: it gives way
// regularly, so that timers and other runs get their turn.
class Turning {
 public:
  Turning(rille_runtime& runtime, std::int64_t budget_ms) : runtime_(runtime) {
    runtime_.turning = true;
    runtime_.turn->begin(budget_ms);
  }
  ~Turning() {
    runtime_.turn->end();
    runtime_.turning = false;
  }
  Turning(const Turning&) = delete;

 private:
  rille_runtime& runtime_;
};

}  // namespace rille::capi
