#include "runtime/core/base/use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "runtime/core/base/units.hpp"

namespace rille {

bool MemoryUse::take(Part p, std::int64_t bytes) {
  if (!limit_) {
    used_[int(p)].fetch_add(bytes, std::memory_order_relaxed);
    return true;
  }
  // Adds first, so that two threads cannot both take the last bytes.
  used_[int(p)].fetch_add(bytes);
  if (total_bytes() <= limit_) return true;
  used_[int(p)].fetch_sub(bytes);
  return refuse(p, bytes);
}

bool MemoryUse::refuse(Part p, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  refusal_ = {p, bytes, {}};
  for (int i = 0; i < parts; ++i) refusal_.used[i] = used_[i].load(std::memory_order_relaxed);
  return false;
}

Error MemoryUse::error() const {
  static constexpr const char* names[] = {"Lua", "tensors", "results", "fibers"};
  const std::lock_guard lock(mutex_);
  std::string used;
  for (int i = 0; i < parts; ++i)
    if (refusal_.used[i] > 0)
      used += fmt::format("{}{} {}", used.empty() ? "" : ", ", names[i], format_size_bytes(refusal_.used[i]));
  Error e = make_error(ErrorKind::memory,
                       fmt::format("the run's memory limit of {} is reached: {}; {} more for {}",
                                   format_size_bytes(limit_), used.empty() ? "nothing is used" : used,
                                   format_size_bytes(refusal_.bytes), names[int(refusal_.part)]),
                       "keep less in tables and tensors, use smaller batches, or raise the limit memory_bytes");
  e.code = "memory_bytes";
  return e;
}

Result<MemoryHeld> MemoryHeld::take(std::shared_ptr<MemoryUse> use, MemoryUse::Part part, std::int64_t bytes) {
  MemoryHeld held;
  if (!use) return held;
  if (!use->take(part, bytes)) return use->error();
  held.use_ = std::move(use);
  held.part_ = part;
  held.bytes_ = bytes;
  return held;
}

MemoryHeld MemoryHeld::count(std::shared_ptr<MemoryUse> use, MemoryUse::Part part, std::int64_t bytes) {
  MemoryHeld held;
  if (!use) return held;
  use->add(part, bytes);
  held.use_ = std::move(use);
  held.part_ = part;
  held.bytes_ = bytes;
  return held;
}

Result<std::string> counted_json(const Value& value, const std::shared_ptr<MemoryUse>& use, int times,
                                 MemoryHeld& held) {
  if (!use || !use->limit_bytes()) return value.to_json();
  const std::int64_t room = std::max<std::int64_t>(0, use->room_bytes()) / times;
  auto text = value.to_json_within(static_cast<std::size_t>(room));
  const std::int64_t bytes = text ? static_cast<std::int64_t>(text->size()) : room + 1;
  RILLE_TRY(held, MemoryHeld::take(use, MemoryUse::Part::results, bytes * times));
  return text ? std::move(*text) : std::string();
}

Result<> DiskUse::take_row(std::int64_t bytes) {
  RILLE_CHECK(take(bytes));
  if (journal_in_ && !journal_in_->take(MemoryUse::Part::results, bytes)) return journal_in_->error();
  return success();
}

Result<> DiskUse::take(std::int64_t bytes) {
  if (used_.fetch_add(bytes) + bytes <= limit_ || !limit_) return success();
  used_.fetch_sub(bytes);
  return refusal(fmt::format("{} more would exceed that", format_size_bytes(bytes)));
}

Result<> DiskUse::written(std::int64_t bytes) {
  if (used_.fetch_add(bytes) + bytes <= limit_ || !limit_) return success();
  return refusal("has written more");
}

Error DiskUse::refusal(const std::string& why) const {
  Error e =
      make_error(ErrorKind::quota,
                 fmt::format("the run may write {}, and {}: the limit disk_bytes", format_size_bytes(limit_), why),
                 "write and fetch less, keep fewer checkpoints, or raise the limit disk_bytes");
  e.code = "disk_bytes";
  return e;
}

}  // namespace rille
