// Staging: pinned memory between host and card, in rings of slots. A transfer uses its slot when the stream reaches it,
// so a slot is reused only after the event recorded behind its last transfer.
//
// The caller ensures that one thread uses a ring at a time, with the card's context current.
#pragma once

#include <cstddef>

#include "runtime/compute/device/cuda/driver.hpp"

namespace rille::device::cuda {

struct Card;

class Staging {
 public:
  static constexpr int slots_max = 32;
  // `spins`: waiting for a slot spins instead of sleeping.
  Staging(Card& card, int slots, std::size_t slot_bytes, bool spins)
      : card_(card), slots_(slots), slot_bytes_(slot_bytes), spins_(spins) {}
  void close();  // once the streams are done

  struct Slot {
    void* memory = nullptr;
    CUevent event = nullptr;  // recorded by the user after the transfer
    bool taken = false;
  };
  // Waits for the slot's last transfer. null: no pinned memory, or the card is lost.
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
