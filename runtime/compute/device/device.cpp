#include "runtime/compute/device/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/compute/device/owner.hpp"
#include "runtime/core/base/units.hpp"

namespace rille {

Result<DType> parse_dtype(std::string_view name) {
  std::string known;
  for (int i = 0; i <= int(DType::f64); ++i) {
    const auto t = static_cast<DType>(i);
    if (name == name_of(t)) return t;
    known += (known.empty() ? "" : ", ") + std::string(name_of(t));
  }
  static constexpr std::pair<std::string_view, const char*> elsewhere[] = {
      {"float32", "f32"}, {"float", "f32"},     {"float64", "f64"}, {"double", "f64"}, {"float16", "f16"},
      {"half", "f16"},    {"bfloat16", "bf16"}, {"int64", "i64"},   {"long", "i64"},   {"int32", "i32"},
      {"int", "i32"},     {"int8", "i8"},       {"uint8", "u8"},    {"byte", "u8"},    {"boolean", "bool"}};
  std::string hint = "one of: " + known;
  for (const auto& [theirs, ours] : elsewhere)
    if (theirs == name) hint = fmt::format("here it is \"{}\"; {}", ours, hint);
  return make_error(ErrorKind::invalid, fmt::format("no element type \"{}\"", name), hint);
}

}  // namespace rille

namespace rille::device {

// Caches freed memory by its rounded size. Buffers keep the Device alive, so they cannot outlive the pool.
struct Device::Pool {
  mutable std::mutex mutex;
  MemoryStats stats;
  struct Free {
    void* data;
    std::uint64_t stamp;
  };
  std::map<std::size_t, std::vector<Free>> free;
  std::map<std::size_t, std::int64_t> live;  // number of live buffers by rounded size

  struct Held {
    std::atomic<std::int64_t> buffers{0}, bytes{0};
  };
  std::map<const char*, Held> owners;  // by the owner's name, which is never freed; blocks hold pointers to entries

  struct OwnedBlock : Buffer::Block {
    Held* held = nullptr;  // entry in Pool::owners
    ~OwnedBlock() {
      held->buffers.fetch_sub(1, std::memory_order_relaxed);
      held->bytes.fetch_sub(std::int64_t(bytes), std::memory_order_relaxed);
    }
  };

  std::string owners_summary() const;
};

namespace {

// Rounds up to a multiple of a step, so that nearly equal sizes share buffers. The step is a power of two, at least 64
// bytes, and for large sizes between 1/16 and 1/8 of the size.
std::size_t rounded(std::size_t bytes) {
  std::size_t step = 64;
  while (step * 16 < bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

std::string summary_of(const std::map<std::size_t, std::int64_t>& live) {
  std::vector<std::pair<std::size_t, std::int64_t>> groups(live.begin(), live.end());
  std::erase_if(groups, [](const auto& g) { return g.second == 0; });
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.first * std::size_t(a.second) > b.first * std::size_t(b.second);
  });
  std::string text;
  for (std::size_t i = 0; i < groups.size() && i < 8; ++i) {
    text += fmt::format("{}{} x {}", i ? ", " : "", groups[i].second, format_size_bytes(std::int64_t(groups[i].first)));
  }
  if (groups.size() > 8) text += fmt::format(" and {} smaller sizes", groups.size() - 8);
  return text.empty() ? "nothing is live" : text;
}

std::string working_text(std::int64_t bytes) {
  return bytes ? fmt::format(" and {} of working memory", format_size_bytes(bytes)) : "";
}

}  // namespace

std::string Device::Pool::owners_summary() const {
  // Bytes and buffers of each owner; owners of equal names are merged.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> by_name;
  for (const auto& [name, held] : owners) {
    if (held.buffers == 0) continue;
    by_name[name].first += held.bytes;
    by_name[name].second += held.buffers;
  }
  std::vector<std::pair<std::string, std::pair<std::int64_t, std::int64_t>>> sorted(by_name.begin(), by_name.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < sorted.size() && i < 8; ++i) {
    const auto& [bytes, buffers] = sorted[i].second;
    text += fmt::format("{}{} {} in {}", i ? ", " : "; by owner: ", sorted[i].first, format_size_bytes(bytes), buffers);
  }
  if (sorted.size() > 8) text += fmt::format(" and {} smaller owners", sorted.size() - 8);
  return text;
}

Device::Device() : pool_(std::make_shared<Pool>()) {}

void* Device::counted_allocate(std::size_t bytes) {
  const auto size = std::int64_t(bytes);
  if (use_ && !use_->take(MemoryUse::Part::tensors, size)) return nullptr;
  void* const data = system_allocate(bytes);
  if (!data && use_) use_->give(MemoryUse::Part::tensors, size);
  return data;
}

Result<Buffer> Device::allocate(std::size_t bytes) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  const auto size = rounded(bytes);
  std::unique_lock lock(pool_->mutex);
  auto& stats = pool_->stats;
  void* data = nullptr;
  std::uint64_t before = 0;
  if (auto& waiting = pool_->free[size]; !waiting.empty()) {
    data = waiting.back().data;
    before = waiting.back().stamp;
    waiting.pop_back();
    stats.cached_bytes -= std::int64_t(size);
  } else {
    const auto over = [&] {
      return stats.limit_bytes &&
             stats.live_bytes + stats.cached_bytes + working_bytes() + std::int64_t(size) > stats.limit_bytes;
    };
    if (over()) {
      lock.unlock();
      release_cache();
      lock.lock();
    }
    if (!over()) data = counted_allocate(size);
    if (!data && !over()) {
      lock.unlock();
      release_cache();
      lock.lock();
      data = counted_allocate(size);
      if (!data && use_ && use_->room_bytes() < std::int64_t(size)) {
        Error e = use_->error();
        e.hint += "; live by size: " + summary_of(pool_->live) + pool_->owners_summary();
        return e;
      }
    }
  }
  if (!data) {
    RILLE_CHECK(usable());
    return make_error(
        ErrorKind::memory,
        fmt::format("{}: no memory for {}: live tensors use {}{}{}{}", name(), format_size_bytes(std::int64_t(bytes)),
                    format_size_bytes(stats.live_bytes), working_text(working_bytes()),
                    stats.limit_bytes ? " of at most " + format_size_bytes(stats.limit_bytes) : "", memory_beside()),
        "live by size: " + summary_of(pool_->live) + pool_->owners_summary() +
            ". Use a smaller batch, or free tensors");
  }
  stats.live_bytes += std::int64_t(size);
  stats.peak_bytes = std::max(stats.peak_bytes, stats.live_bytes + working_bytes());
  ++stats.live_buffers;
  ++stats.allocations;
  ++pool_->live[size];
  auto block = std::make_shared<Pool::OwnedBlock>();
  block->held = &pool_->owners[OwnedBy::now()];
  block->held->buffers.fetch_add(1, std::memory_order_relaxed);
  block->held->bytes.fetch_add(std::int64_t(size), std::memory_order_relaxed);
  block->bytes = size;
  buffer.block_ = std::move(block);
  buffer.block_->device = shared_from_this();
  buffer.block_->data = data;
  buffer.block_->stamp = before;
  return buffer;
}

Buffer Device::adopt(void* data, std::size_t bytes, std::shared_ptr<void> keeper) {
  Buffer buffer;
  buffer.block_ = std::make_shared<Buffer::Block>();
  buffer.block_->device = shared_from_this();
  buffer.block_->data = data;
  buffer.block_->bytes = bytes;
  buffer.block_->keeper = std::move(keeper);
  return buffer;
}

Buffer::Block::~Block() {
  if (data && !keeper) device->give_back(data, bytes, device->stamp());
}

void Device::give_back(void* data, std::size_t bytes, std::uint64_t stamp) {
  const std::lock_guard lock(pool_->mutex);
  pool_->stats.live_bytes -= std::int64_t(bytes);
  pool_->stats.cached_bytes += std::int64_t(bytes);
  --pool_->stats.live_buffers;
  --pool_->live[bytes];
  pool_->free[bytes].push_back({data, stamp});
}

Result<> Device::send(Device& other, const Buffer&, const void*, std::size_t) {
  return make_error(ErrorKind::internal, fmt::format("{} cannot send to {}", name(), other.name()),
                    "this is a bug of Rille: please report it");
}

MemoryStats Device::memory() const {
  const std::lock_guard lock(pool_->mutex);
  MemoryStats& stats = pool_->stats;
  stats.working_bytes = working_bytes();  // libraries' scratch memory may have grown since the last allocation
  stats.peak_bytes = std::max(stats.peak_bytes, stats.live_bytes + stats.working_bytes);
  return stats;
}

std::string Device::memory_summary() const {
  const std::lock_guard lock(pool_->mutex);
  return summary_of(pool_->live) + pool_->owners_summary();
}

void Device::set_memory_limit(std::int64_t bytes) {
  const std::lock_guard lock(pool_->mutex);
  pool_->stats.limit_bytes = bytes;
}

void Device::reset_peak() {
  const std::lock_guard lock(pool_->mutex);
  pool_->stats.peak_bytes = pool_->stats.live_bytes + working_bytes();
}

void Device::release_cache() {
  const std::lock_guard lock(pool_->mutex);
  if (pool_->stats.cached_bytes) before_frees();
  for (auto& [size, waiting] : pool_->free) {
    for (const auto& f : waiting) system_free(f.data, size);
    if (use_) use_->give(MemoryUse::Part::tensors, std::int64_t(size * waiting.size()));
    pool_->stats.cached_bytes -= std::int64_t(size * waiting.size());
    waiting.clear();
  }
}

void Device::release_all() { release_cache(); }

}  // namespace rille::device
