// The memory and disk that a run and its child runs use, each under one limit. Threads: any, except that only one
// thread at a time counts Lua memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "runtime/core/base/error.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille {

class MemoryUse {
 public:
  // results: values on their way to the journal, and the run's result; fibers: the memory of each fiber outside of Lua.
  enum class Part { lua, tensors, results, fibers };
  static constexpr int parts = 4;

  explicit MemoryUse(std::int64_t limit_bytes) : limit_(limit_bytes) {}  // 0: no limit
  MemoryUse(const MemoryUse&) = delete;

  std::int64_t limit_bytes() const { return limit_; }
  std::int64_t bytes(Part p) const { return used_[int(p)].load(std::memory_order_relaxed); }
  std::int64_t total_bytes() const {
    return bytes(Part::lua) + bytes(Part::tensors) + bytes(Part::results) + bytes(Part::fibers);
  }
  std::int64_t room_bytes() const { return limit_ ? limit_ - total_bytes() : INT64_MAX; }

  bool take(Part p, std::int64_t bytes);  // false: the limit would be exceeded; then nothing is counted
  void add(Part p, std::int64_t bytes) { used_[int(p)].fetch_add(bytes, std::memory_order_relaxed); }
  void give(Part p, std::int64_t bytes) { used_[int(p)].fetch_sub(bytes, std::memory_order_relaxed); }
  // Lua allocates so often that its count is not an atomic addition; `reserve`: bytes allowed beyond the limit.
  bool take_lua(std::int64_t bytes, std::int64_t reserve) {
    if (bytes > 0 && limit_ && total_bytes() + bytes > limit_ + reserve) return refuse(Part::lua, bytes);
    add_lua(bytes);
    return true;
  }
  void add_lua(std::int64_t bytes) {
    auto& lua = used_[int(Part::lua)];
    lua.store(lua.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  // Error memory, code memory_bytes: the size of the last refused request, and the use of each part at that time.
  Error error() const;

 private:
  bool refuse(Part p, std::int64_t bytes);  // returns false

  const std::int64_t limit_;
  std::atomic<std::int64_t> used_[parts] = {};
  struct Refusal {
    Part part = Part::lua;
    std::int64_t bytes = 0;
    std::int64_t used[parts] = {};
  };
  mutable std::mutex mutex_;
  Refusal refusal_;
};

// Counts bytes in a MemoryUse until the object is destroyed.
class MemoryHeld {
 public:
  MemoryHeld() = default;
  // Error memory: the limit would be exceeded. `use` may be null: nothing is counted.
  static Result<MemoryHeld> take(std::shared_ptr<MemoryUse> use, MemoryUse::Part part, std::int64_t bytes);
  // Also counts beyond the limit: for small objects, where the next larger request is refused instead.
  static MemoryHeld count(std::shared_ptr<MemoryUse> use, MemoryUse::Part part, std::int64_t bytes);
  MemoryHeld(MemoryHeld&& o) noexcept { *this = std::move(o); }
  MemoryHeld& operator=(MemoryHeld&& o) noexcept {
    std::swap(use_, o.use_);
    std::swap(part_, o.part_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~MemoryHeld() {
    if (use_) use_->give(part_, bytes_);
  }

 private:
  std::shared_ptr<MemoryUse> use_;
  MemoryUse::Part part_ = MemoryUse::Part::results;
  std::int64_t bytes_ = 0;
};

// For code that cannot return an error.
struct MemoryRefused : std::bad_alloc {
  explicit MemoryRefused(Error e) : error(std::move(e)) {}
  const Error error;
};

// Returns the value's JSON, and counts it `times` times in `use` (may be null) as a result. Error memory: that would
// exceed the limit; the JSON never grows beyond what the limit leaves.
Result<std::string> counted_json(const Value& value, const std::shared_ptr<MemoryUse>& use, int times,
                                 MemoryHeld& held);

// Called before `bytes` more bytes are used; an error refuses them. Empty: no limit.
using Room = std::function<Result<>(std::int64_t bytes)>;

// Bytes that a run writes: into the journal, caches and files, those that it fetches included. What is deleted still
// counts. docs/manual/embedding.md says what counts.
class DiskUse {
 public:
  // 0: no limit. `journal_in` also counts the journal's rows, if the journal is in memory; else null.
  explicit DiskUse(std::int64_t limit_bytes, std::shared_ptr<MemoryUse> journal_in = {})
      : limit_(limit_bytes), journal_in_(std::move(journal_in)) {}
  // Call before writing. Error quota, code disk_bytes: the limit would be exceeded, nothing was counted.
  Result<> take(std::int64_t bytes);
  Result<> take_row(std::int64_t bytes);  // counts a row of the journal. Also error memory
  // Call after writing. Counts also what exceeds the limit; error as take: it is exceeded.
  Result<> written(std::int64_t bytes);
  // Counts bytes that are written although they were refused, and returns the sum of such bytes.
  std::int64_t add_beyond(std::int64_t bytes) { return beyond_.fetch_add(bytes) + bytes; }

 private:
  Error refusal(const std::string& why) const;

  const std::int64_t limit_;
  const std::shared_ptr<MemoryUse> journal_in_;
  std::atomic<std::int64_t> used_{0}, beyond_{0};
};

}  // namespace rille
