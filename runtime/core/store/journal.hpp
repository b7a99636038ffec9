// The journal: the only code that opens the database file and writes it. Writes are closures run by one writer thread
// inside BEGIN IMMEDIATE transactions. All writes queued in one turn of the loop share one commit (WAL,
// synchronous=FULL: one fsync): the writer runs the closures while the loop still queues more, and commits when the
// turn ends or after 2 ms of writing. commit() resumes once its write is durable, in the order of the calls.
// enqueue() is for rows that may wait for the next commit; they are written within 5 ms.
// A write whose fence does not match the run's epoch fails with `state` and has no effect: another runner has taken
// over.
// Call all functions on the loop thread. Reads use a second connection there and see committed rows. Several processes
// may share the file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/loop/loop.hpp"
#include "runtime/core/store/apart.hpp"
#include "runtime/core/store/sqlite.hpp"

namespace rille::store {

// The run to which a row belongs, and the epoch of its runner. Empty run: unfenced.
struct Fence {
  Fence() = default;  // not an aggregate: see loop/task.hpp
  Fence(std::string r, std::int64_t e) : run(std::move(r)), epoch(e) {}
  std::string run;
  std::int64_t epoch = 0;
};

class Journal {
 public:
  using Write = std::function<Result<>(Db&)>;

  // Opens `path`, creating or migrating the schema. config: written by a newer Rille. integrity, io: as Db::open.
  // Damage inside the file is found when it is read, or by check(), which reads the whole file.
  static Result<std::unique_ptr<Journal>> open(Loop& loop, const std::string& path);
  // For simulations: no thread, no file. `disk` survives a simulated process. The gate is called before and after each
  // transaction; once it returns false the process is dead, and nothing more is written or answered.
  using Gate = std::function<bool(bool written)>;
  static Result<std::shared_ptr<Db>> make_disk();
  static std::unique_ptr<Journal> in_memory(Loop& loop, std::shared_ptr<Db> disk, Gate gate = nullptr);
  ~Journal();  // writes what is queued, then stops the thread
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  Async<> commit(Write write, Fence fence = {});
  void enqueue(Write write, Fence fence = {});
  // Calls `done` on the loop thread once the write is durable; for callers with their own queue.
  // Many writes may share the fence; null: unfenced.
  using SharedFence = std::shared_ptr<const Fence>;
  void commit_then(Write write, SharedFence fence, std::function<void(Result<>)> done);
  void enqueue(Write write, SharedFence fence);
  // A write that is its own closure, so that the journal allocates nothing for it. For callers with many writes.
  class Queued {
   public:
    explicit Queued(SharedFence f, bool urgent = true) : fence(std::move(f)), urgent_(urgent) {}
    virtual ~Queued() = default;
    virtual Result<> write(Db& db) = 0;  // on the writer thread
    // Called on the loop thread once durable; never if the loop or the journal has ended before.
    virtual void written(std::unique_ptr<Queued> self, Result<> result) = 0;
    SharedFence fence;  // null: unfenced

   private:
    friend class Journal;
    const bool urgent_;  // false: durable with the next commit, and `written` is not called
    Result<> result_;
  };
  void commit_queued(std::unique_ptr<Queued> row) { push(std::move(row)); }
  // Blocks until everything queued is durable; returns the first failure of a queued write. For the end of a process.
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
  std::shared_ptr<std::atomic<bool>> alive_ = std::make_shared<std::atomic<bool>>(true);
  std::shared_ptr<Db> writer_, reader_;
  Gate gate_;  // in-memory journals only, as the two members above
  std::unique_ptr<Timer> lazily_;
  const bool threaded_;
  bool turn_posted_ = false;  // loop thread only, as the next
  SharedFence last_fence_;    // fence of the last fenced write, reused while it is equal
  std::mutex mutex_;          // guards the members below
  std::condition_variable wake_, idle_;
  Batch queue_;
  bool urgent_ = false, stop_ = false, busy_ = false;
  Waits waits_ = Waits::not_at_all;
  Result<> lazy_failure_;
  std::atomic<bool> arrived_{false};    // an urgent write since the writer last looked
  std::atomic<bool> turn_open_{false};  // the loop may queue more in this turn
  std::atomic<int> loops_cpu_{-1};      // the loop's processor when it last queued a write
  Apart apart_;                         // writer thread only, as the next
  const Fence* checked_ = nullptr;      // the fence that the open transaction has already checked
  std::thread thread_;
};

}  // namespace rille::store
