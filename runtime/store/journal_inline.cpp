// A journal in memory: written on the loop's thread, at the end of the turn that queued, so that a simulation does the
// same things in the same order each time. What is durable is what `disk` holds; a death between two writes loses the
// rest, as it would on a real disk.
#include "runtime/store/journal.hpp"
#include "runtime/store/schema.hpp"

namespace rille::store {

Result<std::shared_ptr<Db>> Journal::make_disk() {
  RILLE_TRY(std::shared_ptr<Db> disk, Db::open(":memory:", false));
  RILLE_CHECK(migrate(*disk, ":memory:"));
  return disk;
}

std::unique_ptr<Journal> Journal::in_memory(Loop& loop, std::shared_ptr<Db> disk, Gate gate) {
  std::unique_ptr<Journal> journal(new Journal(loop, disk, disk, false));
  journal->gate_ = std::move(gate);
  return journal;
}

void Journal::push_inline(Item item, bool urgent) {
  queue_.push_back(std::move(item));
  if (!urgent) {
    if (!lazily_) lazily_ = std::make_unique<Timer>(loop_, lazy_ms, [this] { write_inline(); });
  } else if (!std::exchange(turn_posted_, true)) {
    loop_.post([this, alive = alive_] {
      if (!*alive) return;
      turn_posted_ = false;
      write_inline();
    });
  }
}

// False: the process has died here, and nothing of it goes on.
bool Journal::lives(bool written) {
  if (stop_) return false;
  if (!gate_ || gate_(written)) return true;
  stop_ = true;
  queue_.clear();
  return false;
}

void Journal::write_inline() {
  lazily_.reset();
  if (queue_.empty() || !lives(false)) return;
  std::deque<Item> batch;
  batch.swap(queue_);
  std::vector<Result<>> results(batch.size());
  checked_ = nullptr;
  Result<> whole = writer_->run("BEGIN IMMEDIATE");
  for (std::size_t i = 0; whole && i < batch.size(); ++i) whole = write_one(batch[i]);
  if (whole) whole = writer_->run("COMMIT");
  if (!whole) {  // none of it counts: each is tried in a transaction of its own
    (void)writer_->run("ROLLBACK");
    for (std::size_t i = 0; i < batch.size(); ++i)
      results[i] = batch.size() == 1 ? std::move(whole) : write_alone(batch[i]);
  }
  if (lives(true)) report(batch, std::move(results));
}

}  // namespace rille::store
