// Turn: how long the Lua of a runtime may run before the loop's turn must be over. When the time is spent, the code
// that runs gives way: its host suspends it at the next instruction, and it goes on in a later turn, in the order in
// which code gave way. Shared by the hosts of one loop. Loop thread only.
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

  // Until end(), Lua gives way when `budget_ms` are over; -1: whenever it has run for share_ns, so that the loop's
  // timers and other runs get their turn.
  void begin(std::int64_t budget_ms);
  void end();

  // When Lua that starts at `now` must give way. May have passed: then it may do a little, so that it gets on at all.
  std::int64_t due_ns(std::int64_t now) const;
  // Calls host.go_on() in this turn, if there is time left, or in a later one.
  void later(std::weak_ptr<LuaHost*> host);

 private:
  void post();
  void next();

  Loop& loop_;
  std::int64_t due_ns_ = Watchdog::never, share_ns_ = Watchdog::never;
  bool posted_ = false;
  bool served_ = false;  // in this turn, one host has gone on
  std::deque<std::weak_ptr<LuaHost*>> waiting_;
};

}  // namespace rille::host
