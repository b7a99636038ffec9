#include "bindings/host/interrupter.hpp"

#include <thread>

namespace rille::host {

bool Interrupter::add(LuaHost* host) {
  for (auto& slot : slots_) {
    LuaHost* free = nullptr;
    if (!slot.compare_exchange_strong(free, host)) continue;
    if (asked_.load()) host->arm_interrupt();  // arm() may have run before the host was in its slot
    return true;
  }
  return false;
}

void Interrupter::remove(LuaHost* host) {
  for (auto& slot : slots_) {
    LuaHost* mine = host;
    if (slot.load() != host) continue;
    slot.compare_exchange_strong(mine, nullptr);
  }
  // wait for threads inside arm(), which takes a few instructions
  while (arming_.load() > 0) std::this_thread::yield();
}

void Interrupter::arm() noexcept {
  arming_.fetch_add(1);
  asked_.store(true);
  for (auto& slot : slots_)
    if (LuaHost* host = slot.load()) host->arm_interrupt();
  arming_.fetch_sub(1);
}

}  // namespace rille::host
