// Watch: the unattended work of a home (`rille watch`). It ends leases that no run will release, starts scheduled runs,
// and restarts runs whose process died. It runs no script itself: it chooses a run, and the host program starts a
// process for the run, which outlives the watch. Every decision is in the journal before it is carried out, so the
// watch may be killed at any moment. One watch per home. Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "runtime/core/loop/cancel.hpp"
#include "runtime/workflow/engine/schedules.hpp"

namespace rille::engine {

struct WatchOptions {
  WatchOptions() = default;                    // not an aggregate: see loop/task.hpp
  std::int64_t look_ms = 2'000;                // longest time between two passes
  std::int64_t gc_ms = 300'000;                // time between two reaps; a minute if the last reap
                                               // could not ask all providers
  bool resumes = true;                         // resume runs whose process died
  int tries_max = 5;                           // most restarts of a run without a new entry in its record
  std::int64_t resume_within_ms = 86'400'000;  // a run silent for longer is not resumed
};

// The watch's environment; all calls on the loop thread.
struct WatchWorld {
  WatchWorld() = default;
  std::function<bool(const std::string& run)> alive;  // whether a process runs the run
  std::function<Result<>(const std::string& run, const std::string& script)>
      start;                                                  // starts a process that resumes the run
  std::function<Result<>(const std::string& run)> interrupt;  // sends SIGINT to the run's process
  std::function<Async<>()> reap;
  std::function<void()> deliver;                                     // sends due alerts without waiting; may be null
  std::function<Result<std::string>(const std::string& path)> read;  // reads the current script
  std::function<void(const Value& event)> tell;                      // receives {event = started | skipped | ..}
};

// Hands a suspended run over to the watch, which resumes the run once. If the run is suspended again, the watch does
// not resume it. Fails with `invalid` if the run is not suspended.
Async<> hand_over(store::Journal& journal, std::string run, std::int64_t now_us);

class Watch {
 public:
  Watch(Loop& loop, store::Journal& journal, WatchOptions options, WatchWorld world);
  // Runs until the token is cancelled; failures are reported and retried at the next pass.
  Async<> run(CancelToken token);
  Async<> look();  // one pass: schedules, then runs
  Async<> reap();

 private:
  struct Candidate;
  Result<std::vector<Candidate>> candidates() const;
  Result<std::string> objection(const Candidate& run) const;  // why the run is not resumed; "": resume the run
  Async<> revive(Candidate run);
  void failed(const char* what, const Error& why);
  std::int64_t now_us() const { return loop_.clock().wall_us(); }

  Loop& loop_;
  store::Journal& journal_;
  WatchOptions options_;
  WatchWorld world_;
  Schedules schedules_;
  bool reaped_ = true;                              // the last reap succeeded; otherwise retry soon
  std::string last_failure_;                        // a repeated failure is reported only once
  std::map<std::string, std::int64_t> left_alone_;  // run -> monotonic time until which to skip it
  std::set<std::string> interrupted_;               // once per run: a second interrupt would cut its cleanup short
};

}  // namespace rille::engine
