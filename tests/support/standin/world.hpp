// The stand-in driver's simulation: memory, streams and their tasks. Nothing runs until a thread waits (a query also
// waits for a moment); then tasks run, each from a stream drawn by the seed among the runnable ones, until the wait is
// over. The seed also determines how far one stream runs ahead of the others. So every order that the waits allow can
// occur, and a missing wait shows as wrong values.
//
// A single lock; kernels run under it, on the waiting thread.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "control.hpp"
#include "runtime/compute/device/cuda/driver.hpp"

namespace rille::test::standin {

using device::cuda::CUresult;
namespace cu = device::cuda::cu;

struct Mark {  // one recording of an event
  bool done = false;
  std::int64_t at = 0;
};

struct Task {
  std::function<void()> run;  // empty: waits
  std::shared_ptr<Mark> waits_for;
  bool always = false;          // also on a lost GPU, so that its waiters continue
  std::function<bool()> holds;  // not empty: waits until it holds; for a library's ranks
};

struct Stream {
  std::deque<Task> tasks;
  unsigned number = 0;
  int card = 0;
  unsigned weight = 1;  // of its tasks in the draw
  bool capturing = false, broken = false;
  std::thread::id by;  // the capturing thread
  std::vector<std::function<void()>> captured;
};
struct Event {
  std::shared_ptr<Mark> mark;
  int card = 0;
};
struct Graph {
  std::vector<std::function<void()>> calls;
};

struct Range {
  std::unique_ptr<char[]> bytes;
  std::size_t size = 0;
  bool freed = false;
  int card = 0;
};

class World {
 public:
  std::recursive_mutex mutex;
  Options options;
  Report report;
  std::map<int, CUresult> losses;  // by GPU
  int running = 0;                 // the GPU whose task runs
  std::mt19937_64 random{1};
  std::vector<Stream*> streams;
  std::set<Event*> events;
  std::map<std::uintptr_t, Range> memory, pinned;
  std::vector<std::pair<std::uintptr_t, std::size_t>> freed;
  std::map<std::string, int> calls;
  unsigned streams_made = 0;
  std::int64_t ran = 0;
  std::atomic<Watcher> watcher{nullptr};
  std::uint32_t correlations = 0;

  void reset(const Options& o);
  void wrong(const std::string& what);

  char* allocate(std::size_t bytes, int card);  // filled with NaN bytes
  bool free(std::uintptr_t at);                 // poisoned, and never given out again
  void spoil_freed();                           // overwrites freed memory, as a new owner would
  bool inside(std::uintptr_t at, std::size_t bytes) const;
  int card_of(std::uintptr_t at) const;  // the GPU that owns it; -1: none
  bool is_pinned(const void* at, std::size_t bytes) const;

  // Appends to the stream, or to the graph that it captures.
  CUresult add(Stream& stream, std::function<void()> run, bool always = false);
  CUresult lost(int card) const;  // success: not lost
  // Runs one task. false: nothing is runnable. gated: a stream waits for work that was not submitted yet.
  bool step(bool* gated = nullptr);
  // Runs until `done`. false: nothing is runnable.
  bool run_until(const std::function<bool()>& done);
};

World& world();

}  // namespace rille::test::standin
