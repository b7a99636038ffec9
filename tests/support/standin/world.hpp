// The stand-in driver's world: memory, streams and what waits in them. Nothing runs until somebody waits for something
// (to ask whether it is done is to wait for a moment); then tasks run, each time of a stream drawn by the seed among
// those that could go on, until what was waited for has come. The seed also draws how much one stream runs ahead of the
// others. So every order that the waits allow can be seen, and a missing wait shows as wrong values.
//
// One lock for all; a kernel runs under it, on the thread that waits.
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
  bool always = false;          // on a lost card too: who waits for it, waits no more
  std::function<bool()> holds;  // not empty: waits for that; of a library, whose other ranks make it so
};

struct Stream {
  std::deque<Task> tasks;
  unsigned number = 0;
  int card = 0;
  unsigned weight = 1;  // of its tasks in the draw
  bool capturing = false, broken = false;
  std::thread::id by;  // who captures
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
  std::map<int, CUresult> losses;  // by card
  int running = 0;                 // the card whose task runs
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

  char* allocate(std::size_t bytes, int card);  // filled with bytes that are no number
  bool free(std::uintptr_t at);                 // poisoned, and never given out again
  void spoil_freed();                           // as others would, who were given it since
  bool inside(std::uintptr_t at, std::size_t bytes) const;
  int card_of(std::uintptr_t at) const;  // whose memory it is; -1: nobody's
  bool is_pinned(const void* at, std::size_t bytes) const;

  // Behind what the stream has; or into what it captures.
  CUresult add(Stream& stream, std::function<void()> run, bool always = false);
  CUresult lost(int card) const;  // success: it is not
  // One task. false: nobody can go on. gated: somebody waits for work that was not asked for yet.
  bool step(bool* gated = nullptr);
  // Runs until `done`. false: nobody can go on.
  bool run_until(const std::function<bool()>& done);
};

World& world();

}  // namespace rille::test::standin
