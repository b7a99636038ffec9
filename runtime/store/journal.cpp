#include "runtime/store/journal.hpp"

#include <fmt/format.h>

#include <chrono>

#include "runtime/store/schema.hpp"

namespace rille::store {

namespace {
void pause() { __builtin_ia32_pause(); }
}  // namespace

Result<std::unique_ptr<Journal>> Journal::open(Loop& loop, const std::string& path) {
  RILLE_TRY(auto writer, Db::open(path, false));
  RILLE_CHECK(migrate(*writer, path));
  RILLE_TRY(auto reader, Db::open(path, true));
  return std::unique_ptr<Journal>(new Journal(loop, std::move(writer), std::move(reader)));
}

Journal::Journal(Loop& loop, std::unique_ptr<Db> writer, std::unique_ptr<Db> reader)
    : loop_(loop), writer_(std::move(writer)), reader_(std::move(reader)), thread_([this] { work(); }) {}

Journal::~Journal() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
  *alive_ = false;  // completions that are still on their way to the loop are dropped
}

void Journal::push(Item item, bool urgent) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(item));
    urgent_ = urgent_ || urgent;
    arrived_ = true;
  }
  // A lazy row wakes nobody: the writer looks by itself every 5 ms while the queue is not empty, or on the next commit.
  wake_.notify_one();
}

void Journal::enqueue(Write write, Fence fence) { push({std::move(write), std::move(fence), nullptr}, false); }

void Journal::commit_then(Write write, Fence fence, std::function<void(Result<>)> done) {
  push({std::move(write), std::move(fence), std::move(done)}, true);
}

Async<> Journal::commit(Write write, Fence fence) {
  Future<Result<>> done(loop_);
  commit_then(std::move(write), std::move(fence), [done](Result<> r) { done.set(std::move(r)); });
  co_return co_await done;
}

Result<> Journal::flush() {
  std::unique_lock lock(mutex_);
  urgent_ = true;
  wake_.notify_one();
  idle_.wait(lock, [this] { return queue_.empty() && !busy_; });
  return std::exchange(lazy_failure_, {});
}

void Journal::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    // A fiber that has just been answered often comes back at once: a moment of looking is cheaper than a wake-up.
    if (queue_.empty() && !stop_) {
      lock.unlock();
      auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
      while (!arrived_.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < until) pause();
      lock.lock();
    }
    arrived_ = false;
    wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (!urgent_ && !stop_) wake_.wait_for(lock, std::chrono::milliseconds(5), [this] { return stop_ || urgent_; });
    if (queue_.empty() && stop_) return;
    std::deque<Item> batch;
    batch.swap(queue_);
    urgent_ = false;
    busy_ = true;
    lock.unlock();
    write_batch(batch);
    lock.lock();
    busy_ = false;
    idle_.notify_all();
  }
}

Result<> Journal::write_one(Item& item) {
  if (!item.fence.run.empty()) {
    std::int64_t epoch = -1;
    RILLE_CHECK(writer_->query("SELECT epoch FROM runs WHERE id=?", {item.fence.run},
                               [&](const Row& row) { epoch = row.integer(0); }));
    if (epoch != item.fence.epoch)
      return make_error(ErrorKind::state, fmt::format("run {} has been taken over by another runner", item.fence.run),
                        "this process stops here; nothing was written").with_operation("journal");
  }
  return item.write(*writer_);
}

// All in one transaction; when one write fails, none of it counts, and each is tried in a transaction of its own.
void Journal::write_batch(std::deque<Item>& batch) {
  std::vector<Result<>> results(batch.size());
  auto attempt = [&](std::size_t first, std::size_t last) -> Result<> {
    RILLE_CHECK(writer_->run("BEGIN IMMEDIATE"));
    for (std::size_t i = first; i < last; ++i)
      if (Result<> r = write_one(batch[i]); !r) {
        (void)writer_->run("ROLLBACK");
        return r;
      }
    if (Result<> r = writer_->run("COMMIT"); !r) {
      (void)writer_->run("ROLLBACK");
      return r;
    }
    return {};
  };
  if (Result<> whole = attempt(0, batch.size()); !whole) {
    for (std::size_t i = 0; i < batch.size(); ++i)
      results[i] = batch.size() == 1 ? std::move(whole) : attempt(i, i + 1);
  }
  std::vector<std::pair<std::function<void(Result<>)>, Result<>>> finished;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].done) finished.emplace_back(std::move(batch[i].done), std::move(results[i]));
    else if (!results[i]) {
      std::lock_guard lock(mutex_);
      if (lazy_failure_) lazy_failure_ = std::move(results[i]);
    }
  }
  if (finished.empty()) return;
  auto shared = std::make_shared<decltype(finished)>(std::move(finished));
  loop_.post_from_thread([shared, alive = alive_] {
    if (!*alive) return;
    for (auto& [done, result] : *shared) done(std::move(result));
  });
}

}  // namespace rille::store
