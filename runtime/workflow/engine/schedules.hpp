// Schedules: scripts that run repeatedly. For a due instant, one transaction creates a suspended run and marks the
// instant as handled; the run's id is derived from the schedule's name and the instant. So each instant gets at most
// one run, however often processes check and wherever they are killed. watch.hpp starts the runs. Schedules are rows of
// the journal. Loop thread only.
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
  std::string missed = "one";  // instants missed while nothing watched: "skip" all, run the last "one", or "all"
  // What to do at an instant while the schedule's last run still runs: "skip" the instant, "queue" it until that run
  // has ended, "cancel" that run and then start, "allow" both.
  std::string overlap = "skip";
  std::int64_t created_us = 0;
  std::int64_t after_us = 0;  // wall time up to which all instants are handled
  std::string last_run;       // id of the schedule's newest run; "": no run yet
  Value to_value() const;
};

// The outcome of a schedule's due instant: `run` was created, or `why` it was not; or the run `cancel` must end first.
struct Tick {
  Tick() = default;
  std::string schedule, run, why, cancel;
  std::int64_t due_us = 0;
};

class Schedules {
 public:
  Schedules(Loop& loop, store::Journal& journal) : loop_(loop), journal_(journal) {}
  // Fails with `invalid` for a bad name, timing or policy, and with `state` if a schedule of that name exists.
  Async<> add(Schedule schedule);
  Async<> remove(std::string name);  // keeps the schedule's runs; fails with `invalid` if there is no such schedule
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
