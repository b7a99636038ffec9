// Copies from one card's memory to another card's, on the sender's stream: after the work queued there, and before
// later work that may reuse the source memory. The copy waits for the receiver's earlier uses of the destination
// memory, and the receiver's stream waits for the copy. Each wait is for an event that is already recorded, so two
// cards that send to each other cannot deadlock.
#include <algorithm>

#include "runtime/compute/device/cuda/card.hpp"

namespace rille::device::cuda {

// Requests peer access to the other card. Without peer access the driver copies through host memory.
void Card::meet(Card& other) {
  if (std::find(met.begin(), met.end(), other.context) != met.end()) return;
  met.push_back(other.context);
  int can = 0;
  if (driver.cuDeviceCanAccessPeer(&can, device, other.device) == cu::success && can)
    driver.cuCtxEnablePeerAccess(other.context, 0);
}

bool Card::send(Card& other, void* to, const void* from, std::size_t bytes, std::uint64_t stamp, Failure& f) {
  if (!alive(f) || !other.alive(f)) return false;
  meet(other);
  if (!sent && !ok(driver.cuEventCreate(&sent, cu::event_blocking | cu::event_no_timing), "making an event", f))
    return false;
  {
    const std::lock_guard lock(other.mutex);
    const Current there(other);
    if (!other.wait_for_stamp(stamp, compute, f)) return false;
  }
  if (!ok(driver.cuMemcpyPeerAsync(address(to), other.context, address(from), context, bytes, compute),
          "copying to another device", f) ||
      !ok(driver.cuEventRecord(sent, compute), "recording an event", f))
    return false;
  const std::lock_guard lock(other.mutex);
  const Current there(other);
  return other.ok(driver.cuStreamWaitEvent(other.compute, sent, 0), "waiting for an event", f);
}

}  // namespace rille::device::cuda
