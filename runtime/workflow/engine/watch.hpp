// What goes on in a home while nobody is there: leases that no run will release end, schedules start runs, and runs
// whose process died are started again. It runs no script itself: it says which run is to be started, and the edge
// starts a process for it, which outlives the watch. All that it decides is in the journal before it happens, so it may
// be killed at any moment. One per home. Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "runtime/core/loop/cancel.hpp"
#include "runtime/workflow/engine/schedules.hpp"

namespace rille::engine {

struct WatchOptions {
  WatchOptions() = default;      // not an aggregate: see loop/task.hpp
  std::int64_t look_ms = 2'000;  // between two looks, at most
  std::int64_t gc_ms = 300'000;  // between two turns of the reaper; a minute at most after one that could not
                                 // ask everybody
  bool resumes = true;           // runs whose process died
  int tries_max = 5;             // of one run, without its record growing meanwhile
  std::int64_t resume_within_ms = 86'400'000;  // after its last sign of life
};

// The world that it acts in; all calls on the loop thread.
struct WatchWorld {
  WatchWorld() = default;
  std::function<bool(const std::string& run)> alive;                                 // whether a process runs it
  std::function<Result<>(const std::string& run, const std::string& script)> start;  // a process that resumes it
  std::function<void(const std::string& run)> interrupt;  // as Ctrl-C does; its process, if there is one
  std::function<Async<>()> reap;
  std::function<void()> deliver;  // sends the alerts that are due, and does not wait for it; may be null
  std::function<Result<std::string>(const std::string& path)> read;  // a script, as it is now
  std::function<void(const Value& event)> tell;                      // {event = started | skipped | ..}
};

// A run that was suspended is the watch's from now on: it resumes it as if its process had died. Once: when it is
// suspended again, that is left to people again. invalid: it is no suspended run.
Async<> hand_over(store::Journal& journal, std::string run, std::int64_t now_us);

class Watch {
 public:
  Watch(Loop& loop, store::Journal& journal, WatchOptions options, WatchWorld world);
  // Until the token is cancelled; what fails is told, and tried again at the next look.
  Async<> run(CancelToken token);
  Async<> look();  // schedules, then runs; once
  Async<> reap();

 private:
  struct Candidate;
  Result<std::vector<Candidate>> candidates() const;
  Result<std::string> objection(const Candidate& run) const;  // why it is left alone; "": it is not
  Async<> revive(Candidate run);
  void failed(const char* what, const Error& why);
  std::int64_t now_us() const { return loop_.clock().wall_us(); }

  Loop& loop_;
  store::Journal& journal_;
  WatchOptions options_;
  WatchWorld world_;
  Schedules schedules_;
  bool reaped_ = true;                              // by the last turn, wholly: else it is taken again soon
  std::string last_failure_;                        // told once while it stays the same
  std::map<std::string, std::int64_t> left_alone_;  // runs, until when by the monotonic clock: not looked at each time
  std::set<std::string> interrupted_;               // once each: a second time would cut their cleanup short
};

}  // namespace rille::engine
