// rille_script: a script that stays loaded. Its Lua state is that of a rille_run which is never started; its fibers
// belong to a run without a journal, whose main fiber rests until the script is freed. The runtime's thread only.
#pragma once

#include <coroutine>
#include <map>

#include "bindings/c/bridge.hpp"

namespace rille::capi {

// A coroutine that starts at once and is destroyed with its owner.
class Execution {
 public:
  struct promise_type {
    Execution get_return_object() { return Execution(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }  // out of memory, or a bug: tasks return errors as values
  };
  Execution() = default;
  explicit Execution(std::coroutine_handle<promise_type> h) : handle_(h) {}
  Execution(Execution&& o) noexcept : handle_(std::exchange(o.handle_, {})) {}
  Execution& operator=(Execution&& o) noexcept {
    std::swap(handle_, o.handle_);
    return *this;
  }
  ~Execution() {
    if (handle_) handle_.destroy();
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

// A call begun by rille_script_begin.
struct ActiveCall {
  std::uint64_t number = 0;
  FiberId fiber = 0;
  std::shared_ptr<host::Budget> budget;
  rille_values_function done = nullptr;
  void* payload = nullptr;
  std::unique_ptr<Timer> wall, cleanup;
};

}  // namespace rille::capi

struct rille_script : std::enable_shared_from_this<rille_script> {
  rille_runtime* runtime = nullptr;
  std::shared_ptr<rille_run> parts;             // options, Lua state, engine run
  std::shared_ptr<rille::host::Budget> budget;  // for rille_script_call
  int result = LUA_NOREF;                       // registry reference of the value that the script returned
  // registry reference of a table: number of a call -> the results of its function
  int answers = LUA_NOREF;
  // registry reference of the Lua function that makes the body of a call's fiber
  int begin = LUA_NOREF;
  std::map<std::uint64_t, std::unique_ptr<rille::capi::ActiveCall>> calls;
  std::map<std::uint64_t, rille::capi::Execution> watches;  // wait for the ends of the calls' fibers
  std::unique_ptr<rille::Timer> cleanup;                    // limits the cleanup of a freed script
  std::uint64_t calls_begun = 0;
  bool freed = false, ended = false;  // ended: the main fiber no longer rests
  bool ends_later = false;            // freed while fibers clean up; counted in runtime->pending
  rille::capi::Execution execution;

  rille::host::LuaHost& host() const { return *parts->host; }
  rille::capi::Bridge& bridge() const { return *parts->bridge; }
  void interrupt(const rille::Error& why);               // ends all calls
  void finish(std::uint64_t call, rille::Result<> how);  // reports the end of a call to the host program
  void free();   // inside a call of the script or while fibers clean up, it is freed soon after
  void close();  // ends it at once; the handle stays until the host program frees it
};
