// Turn: how long the Lua of a runtime may run in one turn of the loop. When the time is spent, the running code gives
// way: its host suspends it at the next instruction and continues it in a later turn, in the order in which code gave
// way. Shared by the hosts of one loop. Loop thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "bindings/host/watchdog.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::host {

class LuaHost;

class Turn : public std::enable_shared_from_this<Turn> {
 public:
  explicit Turn(Loop& loop) : loop_(loop) {}

  // Until end(), Lua gives way after `budget_ms`; -1: after each share_ns, so that the loop's timers and other runs get
  // their turn.
  void begin(std::int64_t budget_ms);
  void end();

  // The time at which Lua that starts at `now` must give way. If that time has passed, the code still runs a few
  // instructions, so that it makes progress.
  std::int64_t due_ns(std::int64_t now) const;
  // Calls host.go_on() in this turn if there is time left, else in a later one.
  void later(std::weak_ptr<LuaHost*> host);

 private:
  void post();
  void next();

  Loop& loop_;
  std::int64_t due_ns_ = Watchdog::never, share_ns_ = Watchdog::never;
  bool posted_ = false;
  bool served_ = false;  // a host has continued in this turn
  std::deque<std::weak_ptr<LuaHost*>> waiting_;
};

}  // namespace rille::host
