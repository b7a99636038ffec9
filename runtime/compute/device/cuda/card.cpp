#include "runtime/compute/device/cuda/card.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "runtime/compute/device/cuda/own_kernels.hpp"
#include "runtime/compute/device/cuda/trace.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::device::cuda {

namespace {
constexpr std::size_t small_bytes = 16u << 10, large_bytes = 4u << 20;
constexpr std::size_t cells_bytes = 256, key_at = 128;
static_assert(sizeof(kernels::cuda::Fault) <= key_at && sizeof(kernels::cuda::StepKey) == 16);
}  // namespace

Block::~Block() {
  if (!data) return;
  const Current current(card);
  Failure ignored;
  card.settle(ignored);  // queued work may still use the block
  card.driver.cuMemFree(address(data));
  card.block_bytes -= std::int64_t(bytes);
}

bool Card::ok(CUresult result, const char* doing, Failure& f) {
  if (result == cu::success) return true;
  if (is_loss(result)) {
    CUresult none = cu::success;
    lost.compare_exchange_strong(none, result);
    result = lost;  // report the first error, not one that followed from it
  }
  char named[160];
  std::snprintf(named, sizeof named, "cuda:%d: %s", ordinal, doing);
  return driver.ok(result, named, f);
}

bool Card::alive(Failure& f) { return ok(lost, "earlier work", f); }

bool Card::make_streams(Failure& f) {
  for (CUstream* s : {&compute, &copies, &captures}) {
    if (!ok(driver.cuStreamCreate(s, cu::stream_non_blocking), "making a stream", f)) return false;
  }
  for (auto& event : marks) {
    if (!ok(driver.cuEventCreate(&event, cu::event_blocking | cu::event_no_timing), "making an event", f)) return false;
  }
  return ok(driver.cuEventCreate(&now, cu::event_blocking | cu::event_no_timing), "making an event", f);
}

bool Card::open(int number, Failure& f) {
  ordinal = number;
  if (!ok(driver.cuDeviceGet(&device, ordinal), "opening the device", f) ||
      !ok(driver.cuDevicePrimaryCtxRetain(&context, device), "opening the device", f))
    return false;
  retained = true;
  const Current current(*this);
  int major = 0, minor = 0;
  driver.cuDeviceGetAttribute(&major, cu::capability_major, device);
  driver.cuDeviceGetAttribute(&minor, cu::capability_minor, device);
  driver.cuDeviceGetAttribute(&multiprocessors, cu::multiprocessors, device);
  driver.cuDeviceGetAttribute(&shared_max, cu::shared_per_block_optin, device);
  architecture = major * 10 + minor;
  fits_images = cuda::fits_images(driver, architecture);
  std::size_t memory_bytes = 0;
  driver.cuDeviceTotalMem(&memory_bytes, device);
  dnn = std::make_unique<Dnn>(memory_bytes);
  if (!make_streams(f)) return false;
  up_small = std::make_unique<Staging>(*this, 32, small_bytes, false);
  up_large = std::make_unique<Staging>(*this, 4, large_bytes, false);
  down_small = std::make_unique<Staging>(*this, 2, small_bytes, true);
  down_large = std::make_unique<Staging>(*this, 2, large_bytes, true);
  down_fault = std::make_unique<Staging>(*this, 1, sizeof(kernels::cuda::Fault), true);
  cells = allocate_block(cells_bytes, f);
  if (!cells) return false;
  fault = static_cast<kernels::cuda::Fault*>(cells->data);
  key = reinterpret_cast<kernels::cuda::StepKey*>(static_cast<char*>(cells->data) + key_at);
  return ok(driver.cuMemsetD8Async(address(cells->data), 0, cells_bytes, compute), "clearing memory", f);
}

void Card::close() {
  if (!retained) return;
  {
    const Current current(*this);
    Failure ignored;
    settle(ignored);
    drop_trace(*this);
    blas.reset();
    fft.reset();
    dnn.reset();
    scratch.reset();
    cells.reset();
    for (auto* s : {&up_small, &up_large, &down_small, &down_large, &down_fault})
      if (*s) (*s)->close();
    for (const auto* all : {&modules, &given})
      for (const CUmodule m : *all) driver.cuModuleUnload(m);
    close_streams();
    for (const CUevent e : marks)
      if (e) driver.cuEventDestroy(e);
    for (const CUevent e : {now, clock[0], clock[1], sent})
      if (e) driver.cuEventDestroy(e);
    for (const CUstream s : {compute, copies, captures})
      if (s) driver.cuStreamDestroy(s);
  }
  driver.cuDevicePrimaryCtxRelease(device);
}

bool Card::settle(Failure& f) {
  return ok(driver.cuStreamSynchronize(copies), "waiting for the device", f) &&
         ok(driver.cuStreamSynchronize(compute), "waiting for the device", f) && settle_streams(f);
}

bool Card::mark(Failure& f) {
  const std::uint64_t number = marked + 1;
  const CUevent event = marks[number % marks_max];
  if (number > marks_max && !ok(driver.cuEventSynchronize(event), "waiting for the device", f)) return false;
  const std::lock_guard lock(mutex);  // wait_for_stamp() must see the mark's event and number change together
  if (!ok(driver.cuEventRecord(event, compute), "recording an event", f)) return false;
  marked.store(number, std::memory_order_release);
  return true;
}

// Makes the stream `waits`, which copies to this card, wait for the work that `stamp` covers. A mark whose event was
// reused has passed, so there is nothing to wait for.
bool Card::wait_for_stamp(std::uint64_t stamp, CUstream waits, Failure& f) {
  const std::uint64_t last = marked;
  if (stamp == 0 || stamp + marks_max <= last) return true;
  CUevent event = marks[stamp % marks_max];
  if (stamp > last) {  // this mark is not recorded yet: wait for all work queued so far
    event = now;
    if (!ok(driver.cuEventRecord(now, compute), "recording an event", f)) return false;
  }
  return ok(driver.cuStreamWaitEvent(waits, event, 0), "waiting for an event", f);
}

bool Card::upload(void* to, const void* from, std::size_t bytes, std::uint64_t stamp, Failure& f) {
  const std::lock_guard lock(mutex);
  if (!alive(f) || !wait_for_stamp(stamp, copies, f)) return false;
  CUevent last = nullptr;
  for (std::size_t at = 0; at < bytes;) {
    Staging& ring = bytes <= small_bytes ? *up_small : *up_large;
    auto* slot = ring.take(f);
    if (!slot) return false;
    const std::size_t n = std::min(bytes - at, ring.slot_bytes());
    std::memcpy(slot->memory, static_cast<const char*>(from) + at, n);
    if (!ok(driver.cuMemcpyHtoDAsync(address(to) + at, slot->memory, n, copies), "copying to the device", f) ||
        !ok(driver.cuEventRecord(slot->event, copies), "recording an event", f))
      return false;
    last = slot->event;
    at += n;
  }
  return !last || ok(driver.cuStreamWaitEvent(compute, last, 0), "waiting for an event", f);
}

// Copies from device to host memory through two slots: the device fills one while the host reads the other.
bool Card::transfer_out(void* to, const void* from, std::size_t bytes, Failure& f) {
  Staging& ring = bytes <= small_bytes ? *down_small : *down_large;
  Staging::Slot* before = nullptr;
  std::size_t before_at = 0, before_bytes = 0;
  const auto collect = [&] {
    if (!before) return true;
    if (!ok(driver.cuEventSynchronize(before->event), "copying from the device", f)) return false;
    std::memcpy(static_cast<char*>(to) + before_at, before->memory, before_bytes);
    return true;
  };
  for (std::size_t at = 0; at < bytes;) {
    auto* slot = ring.take(f);
    if (!slot) return false;
    const std::size_t n = std::min(bytes - at, ring.slot_bytes());
    if (!ok(driver.cuMemcpyDtoHAsync(slot->memory, address(from) + at, n, compute), "copying from the device", f) ||
        !ok(driver.cuEventRecord(slot->event, compute), "recording an event", f) || !collect())
      return false;
    before = slot;
    before_at = at;
    before_bytes = n;
    at += n;
  }
  return collect();
}

// Copies to host memory. The error cell that kernels write is copied before the values, so that one wait covers both.
bool Card::download(void* to, const void* from, std::size_t bytes, Failure& f) {
  if (!alive(f)) return false;
  const auto* asked = ask_fault(f);
  return asked && transfer_out(to, from, bytes, f) && tell_fault(asked, f) && whole(f);
}

void Card::spoil(const char* why) {
  const std::lock_guard lock(spoilt_mutex);
  spoilt = why;
}

bool Card::whole(Failure& f) {
  const std::lock_guard lock(spoilt_mutex);
  return spoilt.empty() || refuse(f, int(ErrorKind::network),
                                  "start all ranks again from the last checkpoint: what was on its way "
                                  "on this device is lost",
                                  "%s", spoilt.c_str());
}

bool Card::finish(Failure& f) {
  if (!alive(f)) return false;
  const auto* asked = ask_fault(f);
  return asked && tell_fault(asked, f) && whole(f);
}

Staging::Slot* Card::ask_fault(Failure& f) {
  auto* slot = down_fault->take(f);
  const bool asked = slot &&
                     ok(driver.cuMemcpyDtoHAsync(slot->memory, address(fault), sizeof *fault, compute),
                        "copying from the device", f) &&
                     ok(driver.cuEventRecord(slot->event, compute), "recording an event", f);
  return asked ? slot : nullptr;
}

bool Card::tell_fault(const Staging::Slot* asked, Failure& f) {
  if (!ok(driver.cuEventSynchronize(asked->event), "waiting for the device", f)) return false;
  kernels::cuda::Fault found;
  std::memcpy(&found, asked->memory, sizeof found);
  if (found.code == 0) return true;
  if (!ok(driver.cuMemsetD8Async(address(fault), 0, sizeof found, compute), "clearing memory", f)) return false;
  char text[kernels::Call::error_bytes] = {};
  kernels::cuda::describe(found, text, sizeof text);
  char* const hint = std::strchr(text, '\n');
  if (hint) *hint = 0;
  return refuse(f, int(ErrorKind::invalid), hint ? hint + 1 : "", "%s", text);
}

std::shared_ptr<Block> Card::allocate_block(std::size_t bytes, Failure& f) {
  auto block = std::make_shared<Block>(*this);
  CUdeviceptr at = 0;
  if (!ok(driver.cuMemAlloc(&at, bytes), "working memory on the device", f)) return nullptr;
  block->data = reinterpret_cast<void*>(at);
  block->bytes = bytes;
  block_bytes += std::int64_t(bytes);
  return block;
}

bool Card::set_key(std::uint64_t seed, std::uint64_t step, Failure& f) {
  const kernels::cuda::StepKey wanted{seed, step};
  std::uint32_t words[4], known[4];
  std::memcpy(words, &wanted, sizeof words);
  std::memcpy(known, &known_key, sizeof known);
  for (int i = 0; i < 4; ++i) {  // usually only the low word of the step has changed
    if (words[i] == known[i]) continue;
    const auto at = address(key) + 4 * unsigned(i);
    if (!ok(driver.cuMemsetD32Async(at, words[i], 1, compute), "the random key", f)) return false;
  }
  known_key = wanted;
  return true;
}

}  // namespace rille::device::cuda
