// The in-memory journal. It writes on the loop's thread at the end of the turn, so that a simulation is deterministic.
// `disk` holds the durable rows; rows not yet committed are lost when the simulated process dies, as on a real disk.
#include "runtime/core/store/journal.hpp"
#include "runtime/core/store/schema.hpp"

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

void Journal::push_inline(std::unique_ptr<Queued> row) {
  const bool urgent = row->urgent_;
  queue_.push_back(std::move(row));
  if (!urgent) {
    if (!lazily_) lazily_ = std::make_unique<Timer>(loop_, lazy_ms, [this] { write_inline(); });
  } else if (!std::exchange(turn_posted_, true)) {
    loop_.post(life_.guard([this] {
      turn_posted_ = false;
      write_inline();
    }));
  }
}

// Asks the gate whether the simulated process still lives. False: it has died.
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
  Batch batch;
  batch.swap(queue_);
  checked_ = nullptr;
  Result<> whole = writer_->run("BEGIN IMMEDIATE");
  for (std::size_t i = 0; whole && i < batch.size(); ++i) whole = write_one(*batch[i]);
  if (whole) whole = writer_->run("COMMIT");
  if (!whole) {
    (void)writer_->run("ROLLBACK");
    write_apart(batch, std::move(whole));
  }
  if (lives(true)) report(std::move(batch));
}

}  // namespace rille::store
