// Schedules: scripts that are to run again and again. What is due becomes a run, suspended before its first
// instruction, in the transaction that notes that this instant has been dealt with; its id is made from the schedule's
// name and the instant. So whoever looks, and however often, and wherever it is killed, an instant is one run at most.
// Somebody else runs them: see watch.hpp. Rows of the journal; loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/store/journal.hpp"
#include "runtime/workflow/engine/timing.hpp"

namespace rille::engine {

struct Schedule {
  Schedule() = default;  // not an aggregate: see loop/task.hpp
  std::string name, when, script, tag;
  Value args;
  std::string missed = "one";  // of instants at which nobody looked: "skip", "one" (the last), "all"
  // While its last run has not ended, and is not given up: "skip", "queue" (it waits), "cancel" (so does it), "allow".
  std::string overlap = "skip";
  std::int64_t created_us = 0;
  std::int64_t after_us = 0;  // instants up to this one have been dealt with
  std::string last_run;       // "": none yet
  Value to_value() const;
};

// What became of an instant: a run, or why there is none; or the run that is to end before there is one.
struct Tick {
  Tick() = default;
  std::string schedule, run, why, cancel;
  std::int64_t due_us = 0;
};

class Schedules {
 public:
  Schedules(Loop& loop, store::Journal& journal) : loop_(loop), journal_(journal) {}
  // invalid: the name, the timing, a policy. state: there is one of that name.
  Async<> add(Schedule schedule);
  Async<> remove(std::string name);  // invalid: there is none (did you mean). Its runs stay
  Result<std::vector<Schedule>> all() const;
  // Makes runs of what is due now. In order of schedule and time; an error of one keeps none of the others.
  Async<std::vector<Tick>> look();
  // When the next one is due; INT64_MAX: none is.
  Result<std::int64_t> next_us() const;

 private:
  Async<> look_at(Schedule schedule, std::vector<Tick>& ticks);
  Result<bool> runs_still(const Schedule& schedule) const;
  std::int64_t now_us() const { return loop_.clock().wall_us(); }

  Loop& loop_;
  store::Journal& journal_;
};

}  // namespace rille::engine
