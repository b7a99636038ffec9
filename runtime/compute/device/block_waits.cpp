// Where threads of a block wait: block barriers, warp operations, grid barriers; also the callbacks of checked mode.
#include <utility>

#include "runtime/compute/device/block_runner.hpp"

namespace rille::device {

using rille_abi::u64;

RILLE_ON_FIBER unsigned BlockRunner::on_barrier(Worker* w, unsigned thread, unsigned predicate, const void* site) {
  auto& self = *static_cast<BlockRunner*>(w);
  self.collect();
  self.reached(thread);
  if (self.checked_ && !self.check_barrier_sites(thread, site)) return 0;
  self.count += predicate;
  if (++self.arrived_ == self.alive_) {
    self.release_barrier(self.arrived_ - 1);  // the last thread to arrive is not in the list: it continues at once
    if (!self.checked_) self.offer();
    return self.result;
  }
  self.suspend(&self.arrivals_[self.arrived_ - 1], !self.checked_);
  return self.result;
}

RILLE_ON_FIBER void BlockRunner::release_barrier(unsigned waiting) {
  if (checked_ && launch_->run->check->left_writing() >= 0) {
    Violation v;
    v.kind = Violation::Kind::barriers;
    v.thread = barrier_thread_;
    v.other_thread = unsigned(launch_->run->check->left_writing());
    v.site = barrier_site_;
    v.number = 1;
    return fail(v);
  }
  if (head_ == tail_) {  // the list of arrived threads becomes the queue
    std::swap(ready_, arrivals_);
    head_ = 0;
    tail_ = waiting;
  } else {
    for (unsigned i = 0; i < waiting; ++i) push_ready(arrivals_[i]);
  }
  result = count;
  arrived_ = count = 0;
  barrier_site_ = nullptr;
  if (checked_) launch_->run->check->barrier();
}

// Fails if threads of a block wait at different __syncthreads() calls: the behaviour is undefined on a GPU.
RILLE_ON_FIBER bool BlockRunner::check_barrier_sites(unsigned thread, const void* site) {
  if (arrived_ == 0) {
    barrier_site_ = site;
    barrier_thread_ = thread;
    return true;
  }
  if (barrier_site_ == site) return true;
  Violation v;
  v.kind = Violation::Kind::barriers;
  v.thread = thread;
  v.other_thread = barrier_thread_;
  v.site = site;
  v.other_site = barrier_site_;
  fail(v);
  return false;
}

RILLE_ON_FIBER std::uint32_t BlockRunner::there(unsigned warp_at) const {
  const unsigned lanes = threads_ - warp_at * 32;
  return (lanes >= 32 ? ~0u : (1u << lanes) - 1) & ~warps_[warp_at].finished;
}

RILLE_ON_FIBER u64 BlockRunner::on_warp(Worker* w, unsigned thread, rille_abi::WarpKind kind, unsigned mask, u64 value,
                                        unsigned from, const void* site) {
  auto& self = *static_cast<BlockRunner*>(w);
  self.collect();
  self.reached(thread);
  const unsigned lane = thread % 32;
  Warp& warp_of = self.warps_[thread / 32];
  if (!(mask >> lane & 1)) {
    Violation v;
    v.kind = Violation::Kind::lane;
    v.thread = thread;
    v.number = mask;
    v.site = site;
    self.fail(v);
  }
  warp_of.waiting |= 1u << lane;
  warp_of.mask[lane] = mask;
  warp_of.kind[lane] = std::uint8_t(kind);
  warp_of.value[lane] = value;
  warp_of.from[lane] = std::uint8_t(from & 31);
  warp_of.site[lane] = site;
  if (self.try_complete(thread / 32, mask, std::uint8_t(kind), lane)) return warp_of.result[lane];
  self.suspend(&warp_of.stack[lane], false);
  return warp_of.result[lane];
}

// Completes the warp operation if all unfinished lanes of the mask have arrived. False: some have not.
RILLE_ON_FIBER bool BlockRunner::try_complete(unsigned warp_at, std::uint32_t mask, std::uint8_t kind, unsigned self) {
  Warp& w = warps_[warp_at];
  const std::uint32_t need = mask & there(warp_at);
  if (need & ~w.waiting || kind == rille_abi::active) return false;
  for (std::uint32_t left = need; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    if (w.mask[lane] != mask || w.kind[lane] != kind) return false;
  }
  complete(warp_at, need, kind, self);
  return true;
}

RILLE_ON_FIBER void BlockRunner::complete(unsigned warp_at, std::uint32_t group, std::uint8_t kind, unsigned self) {
  Warp& w = warps_[warp_at];
  u64 all = 0;
  bool first = true;
  for (std::uint32_t left = group; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const std::uint32_t v = std::uint32_t(w.value[lane]), old = std::uint32_t(all);
    switch (kind) {
      case rille_abi::ballot: all |= u64(w.value[lane] != 0) << lane; break;
      case rille_abi::add_u32: all = std::uint32_t(old + v); break;
      case rille_abi::min_u32: all = first || v < old ? v : old; break;
      case rille_abi::max_u32: all = first || v > old ? v : old; break;
      case rille_abi::min_i32: all = first || std::int32_t(v) < std::int32_t(old) ? v : old; break;
      case rille_abi::max_i32: all = first || std::int32_t(v) > std::int32_t(old) ? v : old; break;
      case rille_abi::and_u32: all = first ? v : old & v; break;
      case rille_abi::or_u32: all = old | v; break;
      case rille_abi::xor_u32: all = old ^ v; break;
      case rille_abi::active: all = group; break;
      default: break;
    }
    first = false;
  }
  for (std::uint32_t left = group; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    w.result[lane] = all;
    if (kind == rille_abi::exchange) {  // if the source lane takes no part, the lane keeps its own value
      w.result[lane] = w.value[group >> w.from[lane] & 1 ? w.from[lane] : lane];
    } else if (kind == rille_abi::match) {
      w.result[lane] = 0;
      for (std::uint32_t other = group; other; other &= other - 1) {
        const int o = __builtin_ctz(other);
        if (w.value[o] == w.value[lane]) w.result[lane] |= u64(1) << o;
      }
    }
  }
  for (std::uint32_t left = group; left; left &= left - 1) {
    const auto lane = unsigned(__builtin_ctz(left));
    if (lane != self) push_ready(w.stack[lane]);
  }
  w.waiting &= ~group;
  if (checked_) launch_->run->check->warp_barrier(warp_at);
}

// When no thread of the block can continue, completes pending __activemask() calls. Their result is the set of lanes
// that wait in such a call.
RILLE_ON_FIBER bool BlockRunner::unstick() {
  bool any = false;
  for (unsigned i = 0; i * 32 < threads_; ++i) {
    std::uint32_t group = 0;
    for (std::uint32_t left = warps_[i].waiting; left; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      if (warps_[i].kind[lane] == rille_abi::active) group |= 1u << lane;
    }
    if (group) complete(i, group, rille_abi::active, 32);
    any = any || group;
  }
  return any;
}

RILLE_ON_FIBER Violation BlockRunner::deadlock() const {
  Violation v;
  v.kind = Violation::Kind::deadlock;
  v.site = barrier_site_;
  for (unsigned i = 0; i * 32 < threads_; ++i) {
    if (!warps_[i].waiting) continue;
    const int lane = __builtin_ctz(warps_[i].waiting);
    v.thread = i * 32 + unsigned(lane);
    v.number = warps_[i].mask[lane];
    v.site = warps_[i].site[lane];
    v.bytes = arrived_;  // number of threads that wait at the block barrier
    break;
  }
  return v;
}

RILLE_ON_FIBER void BlockRunner::on_grid_barrier(Worker* w, unsigned thread, const void* site) {
  auto& self = *static_cast<BlockRunner*>(w);
  self.collect();
  self.reached(thread);
  if (!self.launch_->grid) {
    Violation v;
    v.kind = Violation::Kind::grid;
    v.thread = thread;
    v.site = site;
    self.fail(v);
  }
  // Synchronise this block's threads first; then one of them waits for the other blocks of the grid.
  on_barrier(w, thread, 0, site);
  bool open = true;
  if (++self.at_grid_ == 1) {
    const Unguarded alone;
    open = self.launch_->grid->wait();
  }
  if (!open) {
    self.failed_ = true;
    self.leave_block();
  }
  if (self.at_grid_ >= self.alive_) self.at_grid_ = 0;
  on_barrier(w, thread, 0, site);
}

RILLE_ON_FIBER void BlockRunner::on_say(Worker* w, const char* text, unsigned bytes) {
  auto& launch = *static_cast<BlockRunner*>(w)->launch_;
  const Unguarded alone;
  const std::lock_guard lock(launch.mutex);
  auto& said = launch.report->said;
  if (said.size() + bytes <= said_bytes_max) said.append(text, bytes);
}

RILLE_ON_FIBER void BlockRunner::on_access(Worker* w, unsigned thread, const void* at, unsigned bytes, unsigned kind,
                                           const void* site) {
  auto& self = *static_cast<BlockRunner*>(w);
  const auto offset = static_cast<const std::byte*>(at) - reinterpret_cast<const std::byte*>(w);
  if (self.stacks_.holds(at) || (offset >= 0 && std::size_t(offset) < sizeof(Worker))) return;
  Violation v = self.launch_->run->check->look(thread, at, bytes, kind, site);
  if (v.kind == Violation::Kind::none) return;
  v.thread = thread;
  v.access = kind;
  v.bytes = bytes;
  v.site = site;
  self.fail(v);
}

RILLE_ON_FIBER void BlockRunner::on_bad_index(Worker* w, unsigned thread, const char* type, u64 index, const char* file,
                                              unsigned line) {
  Violation v;
  v.kind = Violation::Kind::index;
  v.thread = thread;
  v.text = type;
  v.number = index;
  v.file = file;
  v.line = line;
  static_cast<BlockRunner*>(w)->fail(v);
}

RILLE_ON_FIBER void BlockRunner::on_failed(Worker* w, unsigned thread, const char* text, const char* file,
                                           unsigned line) {
  Violation v;
  v.kind = Violation::Kind::failed;
  v.thread = thread;
  v.text = text;
  v.file = file;
  v.line = line;
  static_cast<BlockRunner*>(w)->fail(v);
}

}  // namespace rille::device
