// Signals of the command (the library installs none). SIGINT is told at once to whoever runs Lua, so that an endless
// loop can be interrupted, and then to the loop; SIGTERM and SIGHUP are told to the loop. SIGPIPE is ignored: a
// closed pipe is a write error. One per process, while it lives.
// Lua may sit in a C function that nothing can interrupt (a pattern that takes for ever). What has not been heeded for
// a second is then done by the handler itself: a second SIGINT turns the process into `last_resort` or, without one,
// says `last_line` and ends it; SIGTERM and SIGHUP end it where it stands. That loses nothing that the journal has.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"

namespace rille::cli {

class Interrupts {
 public:
  // `now` runs inside the signal handler (async-signal-safe things only); the others run on the loop.
  Interrupts(Loop& loop, void (*now)(void*), void* context, std::function<void(int count)> on_interrupt,
             std::function<void(int signal)> on_suspend, std::vector<std::string> last_resort = {},
             std::string last_line = "");
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  // Handles signals that arrived while Lua was running; called by the host's on_interrupt.
  void poll();

 private:
  std::function<void(int)> on_interrupt_, on_suspend_;
  std::vector<std::string> last_resort_;
  std::string last_line_;
  std::vector<char*> last_words_;
  uv_async_t* wake_;
};

// This process becomes another program, which no Ctrl-C disturbs. Async-signal-safe. Returns when it could not.
void become(char* const* words);

}  // namespace rille::cli
