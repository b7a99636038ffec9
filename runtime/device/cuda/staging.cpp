#include "runtime/device/cuda/staging.hpp"

namespace rille::device::cuda {

bool Staging::make(Failure& f) {
  if (memory_) return true;
  void* memory = nullptr;
  if (!driver_.ok(driver_.cuMemHostAlloc(&memory, slot_bytes_ * std::size_t(slots_), cu::host_portable),
                  "pinned memory for transfers", f))
    return false;
  memory_ = static_cast<char*>(memory);
  const unsigned flags = cu::event_no_timing | (spins_ ? 0 : cu::event_blocking);
  for (int i = 0; i < slots_; ++i) {
    slot_[i].memory = memory_ + std::size_t(i) * slot_bytes_;
    if (!driver_.ok(driver_.cuEventCreate(&slot_[i].event, flags), "making an event", f)) {
      close();
      return false;
    }
  }
  return true;
}

Staging::Slot* Staging::take(Failure& f) {
  if (!make(f)) return nullptr;
  Slot& slot = slot_[next_];
  if (slot.taken && !driver_.ok(driver_.cuEventSynchronize(slot.event), "waiting for a transfer", f)) return nullptr;
  next_ = (next_ + 1) % slots_;
  slot.taken = true;
  return &slot;
}

void Staging::close() {
  for (auto& slot : slot_) {
    if (slot.event) driver_.cuEventDestroy(slot.event);
    slot = {};
  }
  if (memory_) driver_.cuMemFreeHost(memory_);
  memory_ = nullptr;
}

}  // namespace rille::device::cuda
