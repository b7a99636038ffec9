// The command's signal handlers (the library installs none). SIGINT first interrupts the running Lua code, inside the
// signal handler, so that an endless loop can be stopped; then the event loop handles the signal. SIGTERM and SIGHUP
// go to the event loop only. SIGPIPE is ignored: writing to a closed pipe returns an error. One object per process.
//
// Lua may be inside a C function that cannot be interrupted (a pattern match that never ends). If the loop does not
// handle a signal within a second, the signal handler does: a second SIGINT replaces the process by `last_resort` or,
// without one, prints `last_line` and exits; SIGTERM and SIGHUP exit at once. The journal loses nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"

namespace rille::cli {

class Interrupts {
 public:
  // `now` runs inside the signal handler and may do only async-signal-safe things; the other functions run on the
  // loop.
  Interrupts(Loop& loop, void (*now)(void*), void* context, std::function<void(int count)> on_interrupt,
             std::function<void(int signal)> on_suspend, std::vector<std::string> last_resort = {},
             std::string last_line = "");
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  // Handles signals that arrived while Lua was running; the Lua host's on_interrupt calls it.
  void poll();

 private:
  std::function<void(int)> on_interrupt_, on_suspend_;
  std::vector<std::string> last_resort_;
  std::string last_line_;
  std::vector<char*> last_words_;
  uv_async_t* wake_;
};

// Replaces this process by another program, in which Ctrl-C is ignored. Async-signal-safe. Returns only on failure.
void become(char* const* words);

}  // namespace rille::cli
