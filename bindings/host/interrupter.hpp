// Stops Lua code from any thread and from signal handlers, so only atomics here. A slot holds a host; whoever removes
// one waits for those who are arming.
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
  void arm() noexcept;  // any thread, signal-safe
  bool take() { return asked_.exchange(false); }

 private:
  std::vector<std::atomic<LuaHost*>> slots_;
  std::atomic<int> arming_{0};
  std::atomic<bool> asked_{false};
};

}  // namespace rille::host
