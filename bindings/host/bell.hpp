// Bell: makes the thread that runs Lua code handle requests of other threads, by the debug hook.
//
// Only that thread sets the hook. LuaJIT notes in the same byte which hooks are wanted and that one is running, and
// changes it without a lock: a change by another thread can lose or restore the second note, after which a suspended
// coroutine is broken, or no hook runs any more. So other threads send a signal (SIGURG, which programs rarely use
// and which is ignored by default), and its handler sets the hook.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "bindings/host/lua.hpp"

namespace rille::host {

class Bell {
 public:
  // The hook is set in the state of L, for the next instruction. The first Bell installs the signal handler, the last
  // one restores the previous handler.
  Bell(lua_State* L, lua_Hook hook);
  ~Bell();
  Bell(const Bell&) = delete;
  void ring() noexcept;  // any thread, also in a signal handler

  // While it exists, the handler changes no hook: this thread changes LuaJIT's tables of hooks itself.
  class Quiet {
   public:
    explicit Quiet(Bell& bell) noexcept : bell_(bell) { ++bell_.held_; }
    ~Quiet() { bell_.let_go(); }
    Quiet(const Quiet&) = delete;

   private:
    Bell& bell_;
  };

  // While it exists, this thread may run code of the state.
  class Here {
   public:
    explicit Here(Bell& bell) noexcept;
    ~Here();
    Here(const Here&) = delete;

   private:
    friend class Bell;
    Bell& bell_;
    Here* const outer_;
    const pid_t before_;  // the bell's thread before this object
  };

 private:
  static void on_signal(int number, siginfo_t* info, void* context);
  static void install();
  static void restore();
  void answer() noexcept;
  void let_go() noexcept;

  lua_State* const L_;
  const lua_Hook hook_;
  std::atomic<pid_t> thread_{0};  // the thread that runs the code; 0: none
  std::atomic<bool> rung_{false};
  std::atomic<int> held_{0};               // number of Quiet objects and running answer() calls
  std::atomic<std::int64_t> since_ns_{0};  // time of the oldest unanswered ring
};

}  // namespace rille::host
