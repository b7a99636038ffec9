// Stops Lua code from any thread and from signal handlers; therefore it uses only atomics. Each slot holds a host or
// null. remove() waits until no thread is inside arm().
#pragma once

#include <atomic>
#include <vector>

#include "bindings/host/host.hpp"

namespace rille::host {

class Interrupter {
 public:
  explicit Interrupter(std::size_t slots) : slots_(slots) {}
  bool add(LuaHost* host);  // false: all slots are taken
  void remove(LuaHost* host);
  void arm() noexcept;  // interrupts all hosts; callable from any thread and in a signal handler
  bool take() { return asked_.exchange(false); }

 private:
  std::vector<std::atomic<LuaHost*>> slots_;
  std::atomic<int> arming_{0};
  std::atomic<bool> asked_{false};
};

}  // namespace rille::host
