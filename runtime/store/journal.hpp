// The journal: the one place that knows the schema's file, and the only writer of it. Writes are closures run by one
// writer thread inside BEGIN IMMEDIATE transactions; whatever is queued when it is free shares one commit (WAL,
// synchronous=FULL: one fsync). commit() resumes once its write is durable, in the order of the calls; enqueue() is for
// rows that only need to be durable with the next commit (it is written within 5 ms anyway).
// A write whose fence does not match the run's epoch fails with `state` and leaves nothing: another runner has taken
// over.
// Reads go over a second connection on the loop thread and see committed rows. Several processes may share the file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/loop/loop.hpp"
#include "runtime/store/sqlite.hpp"

namespace rille::store {

// The run on whose behalf a row is written, and the epoch its runner was given. Empty run: unfenced.
struct Fence {
  Fence() = default;  // not an aggregate: see loop/task.hpp
  Fence(std::string r, std::int64_t e) : run(std::move(r)), epoch(e) {}
  std::string run;
  std::int64_t epoch = 0;
};

class Journal {
 public:
  using Write = std::function<Result<>(Db&)>;

  // Opens `path`, creating or migrating the schema. config: made by a newer Rille. integrity, io: as Db::open.
  static Result<std::unique_ptr<Journal>> open(Loop& loop, const std::string& path);
  ~Journal();  // writes what is queued, then stops the thread
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  Async<> commit(Write write, Fence fence = {});
  void enqueue(Write write, Fence fence = {});
  // Calls `done` on the loop thread when durable; the form for callers that keep their own queue.
  void commit_then(Write write, Fence fence, std::function<void(Result<>)> done);
  // Blocks until everything queued is durable; the first failure of a queued write, if any. For the end of a process.
  Result<> flush();

  Db& reader() { return *reader_; }

 private:
  struct Item {
    Write write;
    Fence fence;
    std::function<void(Result<>)> done;
  };
  Journal(Loop& loop, std::unique_ptr<Db> writer, std::unique_ptr<Db> reader);
  void push(Item item, bool urgent);
  void work();
  void write_batch(std::deque<Item>& batch);
  Result<> write_one(Item& item);

  Loop& loop_;
  std::shared_ptr<std::atomic<bool>> alive_ = std::make_shared<std::atomic<bool>>(true);
  std::unique_ptr<Db> writer_, reader_;
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<Item> queue_;
  bool urgent_ = false, stop_ = false, busy_ = false;
  std::atomic<bool> arrived_{false};
  Result<> lazy_failure_;
  std::thread thread_;
};

}  // namespace rille::store
