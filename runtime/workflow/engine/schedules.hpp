// Schedules: scripts that run repeatedly. A due instant becomes a run, suspended before its first instruction, in the
// transaction that marks the instant as handled; its id is derived from the schedule's name and the instant. So however
// often processes check, and wherever they are killed, an instant becomes at most one run. watch.hpp starts the runs.
// Rows of the journal; loop thread only.
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
  std::string missed = "one";  // for missed instants: "skip", "one" (the last), "all"
  // While its last run is neither ended nor given up: "skip", "queue" (it waits), "cancel" (ends the last run, then
  // starts), "allow".
  std::string overlap = "skip";
  std::int64_t created_us = 0;
  std::int64_t after_us = 0;  // instants up to this one are handled
  std::string last_run;       // id of the schedule's newest run; "": no run yet
  Value to_value() const;
};

// The outcome of an instant: a run, or why there is none; or the run that must end first.
struct Tick {
  Tick() = default;
  std::string schedule, run, why, cancel;
  std::int64_t due_us = 0;
};

class Schedules {
 public:
  Schedules(Loop& loop, store::Journal& journal) : loop_(loop), journal_(journal) {}
  // invalid: the name, the timing, a policy. state: a schedule of that name exists.
  Async<> add(Schedule schedule);
  Async<> remove(std::string name);  // invalid: no such schedule (did you mean). Its runs stay
  Result<std::vector<Schedule>> all() const;
  // Creates the runs that are due now, in order of schedule and time.
  Async<std::vector<Tick>> look();
  // When the next run of any schedule is due; INT64_MAX: never.
  Result<std::int64_t> next_us() const;

 private:
  Async<> look_at(Schedule schedule, std::vector<Tick>& ticks);
  Result<bool> runs_still(const Schedule& schedule) const;
  std::int64_t now_us() const { return loop_.clock().wall_us(); }

  Loop& loop_;
  store::Journal& journal_;
};

}  // namespace rille::engine
