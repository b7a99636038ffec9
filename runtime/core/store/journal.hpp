// The journal: the only code that opens the database file and writes it. Writes are closures that one writer thread
// runs inside BEGIN IMMEDIATE transactions. All writes queued in one turn of the loop share one commit (WAL,
// synchronous=FULL: one fsync): the writer runs the closures while the loop still queues more, and commits when the
// turn ends or after 2 ms of writing. commit() resumes once its write is durable, in the order of the calls. enqueue()
// is for rows that may wait for the next commit; these rows are written within 5 ms.
// A write whose fence does not match the run's epoch fails with `state` and has no effect: another runner has taken
// over the run.
// Call all functions on the loop thread. Reads use a second connection on that thread and see committed rows only.
// Several processes may share the file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/loop/lifetime.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/core/store/apart.hpp"
#include "runtime/core/store/sqlite.hpp"

namespace rille::store {

// The run to which a row belongs, and the epoch of its runner. Empty run: the write is not checked.
struct Fence {
  Fence() = default;  // makes Fence no aggregate, because of the GCC bug in loop/task.hpp
  Fence(std::string r, std::int64_t e) : run(std::move(r)), epoch(e) {}
  std::string run;
  std::int64_t epoch = 0;
};

class Journal {
 public:
  using Write = std::function<Result<>(Db&)>;

  // Opens `path` and creates or migrates the schema. Error `config`: a newer Rille wrote the file. Errors `integrity`
  // and `io`: as in Db::open. Damage inside the file is found only when that part is read, or by check(), which reads
  // the whole file.
  static Result<std::unique_ptr<Journal>> open(Loop& loop, const std::string& path);
  // For simulations: a journal without thread and file. `disk` outlives a simulated process. `gate` is called before
  // and after each transaction; once it returns false the process counts as dead: nothing more is written or answered.
  using Gate = std::function<bool(bool written)>;
  static Result<std::shared_ptr<Db>> make_disk();
  static std::unique_ptr<Journal> in_memory(Loop& loop, std::shared_ptr<Db> disk, Gate gate = nullptr);
  ~Journal();  // writes all queued rows, then stops the writer thread
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  Async<> commit(Write write, Fence fence = {});
  void enqueue(Write write, Fence fence = {});
  // Calls `done` on the loop thread once the write is durable; for callers with a queue. Many writes may share one
  // fence; null fence: the run's epoch is not checked.
  using SharedFence = std::shared_ptr<const Fence>;
  void commit_then(Write write, SharedFence fence, std::function<void(Result<>)> done);
  void enqueue(Write write, SharedFence fence);
  // A write that is its own closure, so that the journal allocates nothing for it. For callers with many writes.
  class Queued {
   public:
    explicit Queued(SharedFence f, bool urgent = true) : fence(std::move(f)), urgent_(urgent) {}
    virtual ~Queued() = default;
    virtual Result<> write(Db& db) = 0;  // runs on the writer thread
    // Called on the loop thread once the row is durable; never called if the loop or the journal ends before.
    virtual void written(std::unique_ptr<Queued> self, Result<> result) = 0;
    SharedFence fence;  // null: the run's epoch is not checked

   private:
    friend class Journal;
    const bool urgent_;  // false: the row waits for the next commit, and written() is not called
    Result<> result_;
  };
  void commit_queued(std::unique_ptr<Queued> row) { push(std::move(row)); }
  // Blocks until all queued rows are durable; returns the first failure of a row from enqueue(). For the end of a
  // process.
  Result<> flush();

  Result<> check() { return reader_->check(); }

  Db& reader() { return *reader_; }

 private:
  using Batch = std::vector<std::unique_ptr<Queued>>;
  struct Closure;
  struct Turn;
  enum class Waits { not_at_all, for_work, for_more_lazy_rows, for_the_turn };
  static constexpr std::int64_t lazy_ms = 5;
  Journal(Loop& loop, std::shared_ptr<Db> writer, std::shared_ptr<Db> reader, bool threaded);
  SharedFence shared(Fence fence);
  void push_inline(std::unique_ptr<Queued> row);
  void write_inline();
  bool lives(bool written);
  void push(std::unique_ptr<Queued> row);
  void turn_over();
  void work();
  bool spin(std::int64_t us, bool until_turn_over);
  bool collect(std::unique_lock<std::mutex>& lock, Batch& batch);
  Result<> write_all(std::unique_lock<std::mutex>& lock, Batch& batch);
  void write_apart(Batch& batch, Result<> whole);
  Result<> write_alone(Queued& row);
  Result<> write_one(Queued& row);
  void report(Batch batch);

  Loop& loop_;
  std::shared_ptr<Db> writer_, reader_;
  Gate gate_;  // null except in journals of in_memory()
  std::unique_ptr<Timer> lazily_;
  const bool threaded_;
  bool turn_posted_ = false;  // the end of this turn of the loop will call turn_over(); loop thread only
  SharedFence last_fence_;    // fence of the last fenced write, reused for equal fences; loop thread only
  std::mutex mutex_;          // guards queue_, urgent_, stop_, busy_, waits_ and lazy_failure_
  std::condition_variable wake_, idle_;
  Batch queue_;
  bool urgent_ = false, stop_ = false, busy_ = false;
  Waits waits_ = Waits::not_at_all;
  Result<> lazy_failure_;
  std::atomic<bool> arrived_{false};    // an urgent row was queued since the writer last took the queue
  std::atomic<bool> turn_open_{false};  // the loop may queue more rows in this turn
  std::atomic<int> loops_cpu_{-1};      // the processor on which the loop last queued a row; -1: unknown
  Apart apart_;                         // used by the writer thread only
  const Fence* checked_ = nullptr;      // writer thread only: the fence that the open transaction has checked
  std::thread thread_;
  Lifetime life_;  // last: ends first; completions still queued on the loop then do nothing
};

}  // namespace rille::store
