#include "runtime/compute/device/cuda/staging.hpp"

#include "runtime/compute/device/cuda/card.hpp"

namespace rille::device::cuda {

bool Staging::make(Failure& f) {
  if (memory_) return true;
  void* memory = nullptr;
  if (!card_.ok(card_.driver.cuMemHostAlloc(&memory, slot_bytes_ * std::size_t(slots_), cu::host_portable),
                "pinned memory for transfers", f))
    return false;
  memory_ = static_cast<char*>(memory);
  const unsigned flags = cu::event_no_timing | (spins_ ? 0 : cu::event_blocking);
  for (int i = 0; i < slots_; ++i) {
    slot_[i].memory = memory_ + std::size_t(i) * slot_bytes_;
    if (!card_.ok(card_.driver.cuEventCreate(&slot_[i].event, flags), "making an event", f)) {
      close();
      return false;
    }
  }
  return true;
}

Staging::Slot* Staging::take(Failure& f) {
  if (!make(f)) return nullptr;
  Slot& slot = slot_[next_];
  if (slot.taken && !card_.ok(card_.driver.cuEventSynchronize(slot.event), "waiting for a transfer", f)) return nullptr;
  next_ = (next_ + 1) % slots_;
  slot.taken = true;
  return &slot;
}

void Staging::close() {
  for (auto& slot : slot_) {
    if (slot.event) card_.driver.cuEventDestroy(slot.event);
    slot = {};
  }
  if (memory_) card_.driver.cuMemFreeHost(memory_);
  memory_ = nullptr;
}

}  // namespace rille::device::cuda
