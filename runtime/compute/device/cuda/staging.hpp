// Staging: a ring of slots of pinned memory, for transfers between host and card. The card reads or writes a slot
// later, when its stream reaches the transfer, so a slot is reused only after the event recorded behind its last
// transfer.
//
// The caller ensures that only one thread uses a ring at a time, and that the card's context is current.
#pragma once

#include <cstddef>

#include "runtime/compute/device/cuda/driver.hpp"

namespace rille::device::cuda {

struct Card;

class Staging {
 public:
  static constexpr int slots_max = 32;
  // `spins`: waiting for a slot spins instead of sleeping, which is faster and uses CPU time.
  Staging(Card& card, int slots, std::size_t slot_bytes, bool spins)
      : card_(card), slots_(slots), slot_bytes_(slot_bytes), spins_(spins) {}
  void close();  // call it after the streams have finished

  struct Slot {
    void* memory = nullptr;
    CUevent event = nullptr;  // the caller records it after the slot's transfer
    bool taken = false;
  };
  // Returns the next slot, after waiting for its last transfer. null: there is no pinned memory, or the card is lost.
  Slot* take(Failure& f);
  std::size_t slot_bytes() const { return slot_bytes_; }

 private:
  bool make(Failure& f);
  Card& card_;
  int slots_;
  std::size_t slot_bytes_;
  bool spins_;
  char* memory_ = nullptr;
  Slot slot_[slots_max];
  int next_ = 0;
};

}  // namespace rille::device::cuda
