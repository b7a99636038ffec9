// A run's record, and how far the replay has got. Entries are found by (fiber path, position); completed ones are
// delivered in order of seq. Loop thread only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/workflow/engine/entries.hpp"

namespace rille::engine {

// A cancel of the whole run takes effect after the delivery of one completion and before the next, which is recorded
// before anything follows from it: a resumed run unwinds from the same place.
struct PlannedCancel {
  std::int64_t after = 0;  // seq of the last completion that came before it; -1: before the run's start
  Error reason;
  bool recorded = false;
};

class Replay {
 public:
  static Result<Replay> load(store::Db& db, const std::string& run, const store::Blobs* blobs = nullptr);

  const Entry* find(const std::string& fiber, std::int64_t pos) const;
  // The seq of the next delivery; -1 when all recorded completions have been delivered.
  std::int64_t next() const { return cursor_ < order_.size() ? order_[cursor_]->seq : -1; }
  const Entry& next_entry() const { return *order_[cursor_]; }
  bool empty() const { return entries_.empty(); }
  bool over() const { return cursor_ >= order_.size(); }
  void advance() { ++cursor_; }
  // The first completed entry of that fiber at `pos` or later: one that the fiber should have reached.
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
