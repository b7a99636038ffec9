#include "runtime/core/store/journal.hpp"

#include <fmt/format.h>

#include <chrono>
#include <iterator>

#include "runtime/core/store/schema.hpp"

namespace rille::store {

namespace {
void pause() { __builtin_ia32_pause(); }
constexpr std::int64_t idle_spin_us = 100, turn_spin_us = 30, turn_us_max = 1000, group_us_max = 2000;
// time without a new row after which the writer acts: lift the processor restriction; extend the log
constexpr std::int64_t apart_ms = 100, lengthen_ms = 20;
constexpr std::size_t apart_rows = 8;  // with fewer rows, the commit finishes sooner than a move to another processor
constexpr std::int64_t log_bytes_kept = 256 << 10;
// write-ahead log lengths, in pages, that start a checkpoint: if the writer is idle; even if rows wait
constexpr std::int64_t log_pages_long = 1000, log_pages_max = 8000;
}  // namespace

Result<std::unique_ptr<Journal>> Journal::open(Loop& loop, const std::string& path) {
  RILLE_TRY(auto writer, Db::open(path, false));
  RILLE_CHECK(migrate(*writer, path));
  writer->keep_log();
  RILLE_TRY(auto reader, Db::open(path, true));
  return std::unique_ptr<Journal>(new Journal(loop, std::move(writer), std::move(reader), true));
}

Journal::Journal(Loop& loop, std::shared_ptr<Db> writer, std::shared_ptr<Db> reader, bool threaded)
    : loop_(loop), writer_(std::move(writer)), reader_(std::move(reader)), threaded_(threaded) {
  if (threaded_) thread_ = std::thread([this] { work(); });
}

Journal::~Journal() {
  if (!threaded_) {
    write_inline();
    return;
  }
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
  reader_.reset();
  writer_->shrink_log(log_bytes_kept);
}

// Calls turn_over() once at the end of the loop's turn; also if the loop drops the posted callback.
struct Journal::Turn {
  explicit Turn(Journal& j) : journal(j), life(j.life_.watch()) {}
  Turn(const Turn&) = delete;
  ~Turn() { over(); }
  void over() {
    if (!std::exchange(called, true) && life.alive()) journal.turn_over();
  }
  Journal& journal;
  Lifetime::Watch life;
  bool called = false;
};

struct Journal::Closure final : Queued {
  Closure(Write w, SharedFence f, std::function<void(Result<>)> d)
      : Queued(std::move(f), d != nullptr), what(std::move(w)), done(std::move(d)) {}
  Result<> write(Db& db) override { return what(db); }
  void written(std::unique_ptr<Queued>, Result<> result) override { done(std::move(result)); }
  Write what;
  std::function<void(Result<>)> done;
};

void Journal::push(std::unique_ptr<Queued> row) {
  if (!threaded_) return push_inline(std::move(row));
  const bool urgent = row->urgent_;
  if (urgent) {
    loop_.expect();
    loops_cpu_.store(sched_getcpu(), std::memory_order_relaxed);
  }
  bool notify;
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(row));
    urgent_ = urgent_ || urgent;
    if (urgent) {
      arrived_.store(true, std::memory_order_release);
      turn_open_ = true;
    }
    // An urgent row wakes the writer. Other rows wait for the next commit or for the writer's 5 ms timer.
    notify = waits_ == Waits::for_work || (urgent && waits_ == Waits::for_more_lazy_rows);
  }
  if (notify) wake_.notify_one();
  if (urgent && !std::exchange(turn_posted_, true))
    loop_.post([turn = std::make_shared<Turn>(*this)] { turn->over(); });
}

// Called when all ready work of the loop has run: no write will be queued before an answer or an external event.
void Journal::turn_over() {
  turn_posted_ = false;
  bool notify;
  {
    std::lock_guard lock(mutex_);
    turn_open_ = false;
    notify = waits_ == Waits::for_the_turn;
  }
  if (notify) wake_.notify_one();
}

// Returns one fence object for equal fences, so that the writer checks each fence once per transaction.
Journal::SharedFence Journal::shared(Fence fence) {
  if (fence.run.empty()) return nullptr;
  if (!last_fence_ || last_fence_->epoch != fence.epoch || last_fence_->run != fence.run)
    last_fence_ = std::make_shared<const Fence>(std::move(fence));
  return last_fence_;
}

void Journal::enqueue(Write write, Fence fence) { enqueue(std::move(write), shared(std::move(fence))); }
void Journal::enqueue(Write write, SharedFence fence) {
  push(std::make_unique<Closure>(std::move(write), std::move(fence), nullptr));
}

void Journal::commit_then(Write write, SharedFence fence, std::function<void(Result<>)> done) {
  push(std::make_unique<Closure>(std::move(write), std::move(fence), std::move(done)));
}

Async<> Journal::commit(Write write, Fence fence) {
  Future<Result<>> done(loop_);
  commit_then(std::move(write), shared(std::move(fence)), [done](Result<> r) { done.set(std::move(r)); });
  co_return co_await done;
}

Result<> Journal::flush() {
  if (!threaded_) {
    write_inline();
    return std::exchange(lazy_failure_, {});
  }
  std::unique_lock lock(mutex_);
  urgent_ = true;
  turn_open_ = false;
  wake_.notify_one();
  idle_.wait(lock, [this] { return queue_.empty() && !busy_; });
  return std::exchange(lazy_failure_, {});
}

// Waits for a new urgent write by spinning: that is cheaper than a wake-up, and a fiber often queues its next write
// right after an answer.
bool Journal::spin(std::int64_t us, bool until_turn_over) {
  auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (!arrived_.load(std::memory_order_acquire)) {
    if (until_turn_over && !turn_open_) return false;
    if (std::chrono::steady_clock::now() >= until) return false;
    pause();
  }
  return true;
}

void Journal::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (!urgent_ && !stop_) {
      lock.unlock();
      spin(idle_spin_us, false);
      lock.lock();
    }
    if (writer_->log_pages() >= (queue_.empty() && !stop_ ? log_pages_long : log_pages_max)) {
      lock.unlock();
      writer_->move_log();
      lock.lock();
      continue;
    }
    waits_ = Waits::for_work;
    const auto called = [this] { return stop_ || !queue_.empty(); };
    if (writer_->log_is_short() && !wake_.wait_for(lock, std::chrono::milliseconds(lengthen_ms), called)) {
      lock.unlock();
      writer_->lengthen_log();
      lock.lock();
      continue;
    }
    if (apart_ && !wake_.wait_for(lock, std::chrono::milliseconds(apart_ms), called)) apart_.anywhere();
    wake_.wait(lock, called);
    waits_ = Waits::for_more_lazy_rows;
    std::chrono::milliseconds lazily(lazy_ms);
    if (!urgent_ && !stop_) wake_.wait_for(lock, lazily, [this] { return stop_ || urgent_; });
    waits_ = Waits::not_at_all;
    if (queue_.empty() && stop_) return;
    busy_ = true;
    Batch batch;
    Result<> whole = write_all(lock, batch);
    lock.unlock();
    if (!whole) write_apart(batch, std::move(whole));
    report(std::move(batch));
    lock.lock();
    busy_ = false;
    idle_.notify_all();
  }
}

// Moves the queued rows to the end of the batch. If none is queued, waits as long as the loop's turn may bring more.
// False: no row came, commit now.
bool Journal::collect(std::unique_lock<std::mutex>& lock, Batch& batch) {
  if (queue_.empty() && turn_open_ && !batch.empty()) {
    lock.unlock();
    spin(turn_spin_us, true);
    lock.lock();
    if (queue_.empty() && turn_open_ && !stop_) {
      waits_ = Waits::for_the_turn;
      wake_.wait_for(lock, std::chrono::microseconds(turn_us_max), [this] { return stop_ || !turn_open_; });
      waits_ = Waits::not_at_all;
    }
  }
  arrived_ = false;
  urgent_ = false;
  if (queue_.empty()) return false;
  if (batch.empty()) {
    batch.swap(queue_);
    queue_.reserve(batch.size());
    return true;
  }
  std::move(queue_.begin(), queue_.end(), std::back_inserter(batch));
  queue_.clear();
  return true;
}

// Writes all rows queued until the end of the loop's turn in one transaction, for about 2 ms at most. Rows beyond that
// return to the front of the queue, so that the first waiters resume while the rest is written. `lock` is held at entry
// and exit only.
Result<> Journal::write_all(std::unique_lock<std::mutex>& lock, Batch& batch) {
  struct Relock {
    std::unique_lock<std::mutex>& lock;
    ~Relock() {
      if (!lock) lock.lock();
    }
  } relock{lock};
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(group_us_max);
  std::size_t written = 0;
  const auto full = [&] { return written > 0 && std::chrono::steady_clock::now() > until; };
  const auto leave = [&](std::size_t from) {
    if (from >= batch.size()) return;
    const auto rest = batch.begin() + static_cast<std::ptrdiff_t>(from);
    lock.lock();
    queue_.insert(queue_.begin(), std::move_iterator(rest), std::move_iterator(batch.end()));
    urgent_ = true;
    lock.unlock();
    batch.erase(rest, batch.end());
  };
  collect(lock, batch);
  lock.unlock();
  checked_ = nullptr;
  RILLE_CHECK(writer_->run("BEGIN IMMEDIATE"));
  while (written < batch.size() && !full()) {
    if (Result<> r = write_one(*batch[written]); !r) {
      (void)writer_->run("ROLLBACK");
      leave(written + 1);
      return r;
    }
    if (++written % apart_rows == 0) apart_.from(loops_cpu_.load(std::memory_order_relaxed));
    if (written < batch.size() || full()) continue;
    lock.lock();
    collect(lock, batch);
    lock.unlock();
  }
  leave(written);
  Result<> r = writer_->run("COMMIT");
  if (!r) (void)writer_->run("ROLLBACK");
  return r;
}

// After the transaction of the whole batch has failed: writes each row in a separate transaction.
void Journal::write_apart(Batch& batch, Result<> whole) {
  for (auto& row : batch) row->result_ = batch.size() == 1 ? std::move(whole) : write_alone(*row);
}

Result<> Journal::write_alone(Queued& row) {
  checked_ = nullptr;
  RILLE_CHECK(writer_->run("BEGIN IMMEDIATE"));
  Result<> r = write_one(row);
  if (r) r = writer_->run("COMMIT");
  if (!r) (void)writer_->run("ROLLBACK");
  return r;
}

Result<> Journal::write_one(Queued& row) {
  // a write without a fence may change a run's epoch, so check the fence again afterwards
  if (!row.fence) checked_ = nullptr;
  if (row.fence && row.fence.get() != checked_) {
    const Fence& fence = *row.fence;
    std::int64_t epoch = -1;
    RILLE_CHECK(writer_->query("SELECT epoch FROM runs WHERE id=?", {fence.run},
                               [&](const store::Row& found) { epoch = found.integer(0); }));
    if (epoch != fence.epoch)
      return make_error(ErrorKind::state, fmt::format("run {} has been taken over by another process", fence.run),
                        "this process stops; it has written nothing more to the run's journal")
          .with_operation("journal");
    checked_ = row.fence.get();
  }
  return row.write(*writer_);
}

// Passes the results of a batch to the loop with a single wake-up.
void Journal::report(Batch batch) {
  std::size_t answers = 0;
  for (auto& row : batch) {
    if (row->urgent_) {
      ++answers;
    } else if (!row->result_) {
      std::lock_guard lock(mutex_);
      if (lazy_failure_) lazy_failure_ = std::move(row->result_);
    }
  }
  if (answers == 0) return;
  auto shared = std::make_shared<Batch>(std::move(batch));
  auto answer = life_.guard([shared] {
    for (auto& row : *shared) {
      if (!row->urgent_) continue;
      Queued& r = *row;
      r.written(std::move(row), std::move(r.result_));
    }
  });
  if (!threaded_) return loop_.post(std::move(answer));
  loop_.post_from_thread([answers, answer = std::move(answer), &loop = loop_] {
    for (std::size_t i = 0; i < answers; ++i) loop.arrived();
    answer();
  });
}

}  // namespace rille::store
