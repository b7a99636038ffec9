// A run's record, and the current position of the replay. Entries are found by fiber path and position in the fiber;
// completed entries are delivered in order of seq. Loop thread only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/workflow/engine/entries.hpp"

namespace rille::engine {

// A cancel of the whole run takes effect between the deliveries of two completions. The place is recorded before the
// cancel has any effect, so that a resumed run unwinds from the same place.
struct PlannedCancel {
  std::int64_t after = 0;  // seq of the last completion delivered before the cancel; -1: cancelled before the start
  Error reason;
  bool recorded = false;
};

class Replay {
 public:
  static Result<Replay> load(store::Db& db, const std::string& run, const store::Blobs* blobs = nullptr);

  const Entry* find(const std::string& fiber, std::int64_t pos) const;
  // The seq of the next completion to deliver; -1 when all recorded completions have been delivered.
  std::int64_t next() const { return cursor_ < order_.size() ? order_[cursor_]->seq : -1; }
  const Entry& next_entry() const { return *order_[cursor_]; }
  bool empty() const { return entries_.empty(); }
  bool over() const { return cursor_ >= order_.size(); }
  void advance() { ++cursor_; }
  // The fiber's first completed entry at `pos` or later, or null. If the fiber ends before this entry, it has diverged.
  const Entry* beyond(const std::string& fiber, std::int64_t pos) const;
  const std::optional<PlannedCancel>& cancel() const { return cancel_; }
  std::int64_t last_seq() const { return order_.empty() ? 0 : order_.back()->seq; }

 private:
  using Key = std::pair<std::string, std::int64_t>;
  std::map<Key, Entry> entries_;
  std::vector<const Entry*> order_;
  std::size_t cursor_ = 0;
  std::optional<PlannedCancel> cancel_;
};

}  // namespace rille::engine
