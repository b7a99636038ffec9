// Signals of the command (the library installs none). SIGINT is told at once to whoever runs Lua, so that an endless
// loop can be interrupted, and then to the loop; SIGTERM and SIGHUP are told to the loop. SIGPIPE is ignored: a
// closed pipe is a write error. One per process, while it lives.
#pragma once

#include <functional>

#include "runtime/loop/loop.hpp"

namespace rille::cli {

class Interrupts {
 public:
  // `now` runs inside the signal handler (async-signal-safe things only); the others run on the loop.
  Interrupts(Loop& loop, void (*now)(void*), void* context, std::function<void(int count)> on_interrupt,
             std::function<void(int signal)> on_suspend);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  // Handles signals that arrived while Lua was running; called by the host's on_interrupt.
  void poll();

 private:
  std::function<void(int)> on_interrupt_, on_suspend_;
  int seen_ = 0;
  uv_async_t* wake_;
};

}  // namespace rille::cli
