// Users' streams. A dropped stream is kept for the next request and destroyed only when the card closes, so settle()
// can wait for all streams, whether held or dropped.
#include <algorithm>

#include "runtime/compute/device/cuda/card.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::device::cuda {

Stream* Card::make_stream(Failure& f) {
  if (!alive(f)) return nullptr;
  const std::lock_guard lock(streams_mutex);
  CUstream made = nullptr;
  if (!idle_streams.empty()) {
    made = idle_streams.back();
    idle_streams.pop_back();
  } else if (streams.size() >= streams_max) {
    refuse(f, int(ErrorKind::state),
           "call s:release() on streams that are no longer used; a few streams keep a GPU busy",
           "all %zu streams of this GPU are in use", streams.size());
  } else if (ok(driver.cuStreamCreate(&made, cu::stream_non_blocking), "making a stream", f)) {
    streams.push_back(made);
  }
  return reinterpret_cast<Stream*>(made);
}

void Card::drop_stream(Stream* stream) {
  const std::lock_guard lock(streams_mutex);
  idle_streams.push_back(reinterpret_cast<CUstream>(stream));
}

bool Card::passed(CUevent event, bool& yes, Failure& f) {
  if (!alive(f)) return false;
  const CUresult result = driver.cuEventQuery(event);
  yes = result == cu::success;
  return result == cu::not_ready || ok(result, "asking for an event", f);
}

// Waits for all users' streams, without holding the lock: drop_stream() must not wait for the card.
bool Card::settle_streams(Failure& f) {
  std::vector<CUstream> all;
  {
    const std::lock_guard lock(streams_mutex);
    all = streams;
  }
  return std::all_of(all.begin(), all.end(),
                     [&](CUstream s) { return ok(driver.cuStreamSynchronize(s), "waiting for the device", f); });
}

void Card::close_streams() {
  for (const CUstream s : streams) driver.cuStreamDestroy(s);
  streams.clear();
  idle_streams.clear();
}

}  // namespace rille::device::cuda
