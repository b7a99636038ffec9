// One run of a script in a simulated world, for `rille simulate` and `rille plan`: the real script with a simulated
// clock and cloud. It does not touch RILLE_HOME.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/app.hpp"
#include "runtime/workflow/engine/simulation.hpp"

namespace rille::cli {

struct Rehearsal {
  std::string script;  // absolute path
  Value args;
  std::string home;  // RILLE_HOME of the rehearsed runs; created on demand
  std::shared_ptr<const engine::Lessons> lessons;
  bool unknown_calls_end_at_once = false;  // false: a call without a known duration is an error
  std::int64_t days_max = 60;              // limit of the virtual time, in days
  // Called with the virtual time since the start. May be null.
  std::function<void(std::int64_t us, const Value& event)> event;
  std::function<void(std::string_view text)> print;
};

struct Rented {
  Value options;  // as passed by the script
  lease::Lease lease;
};

struct Outcome {
  std::uint64_t seed = 0;
  Result<Value> result = Value();
  Micros cost_micros = 0;
  std::int64_t took_us = 0, lost_work_ms = 0;
  int preemptions = 0, machines = 0, left_alive = 0;
  int announced = 0;           // preemptions whose call left the machine in time
  std::vector<Rented> rented;  // the rents of the run, if requested
};

Outcome rehearse(const Rehearsal& what, const provider::sim::Options& weather, bool with_rented);

// Call durations learned from earlier runs of this script in `home`; empty without a journal.
std::shared_ptr<const engine::Lessons> lessons_of(const std::string& home, const std::string& script);

// A temporary folder, removed by the destructor.
class ScratchHome {
 public:
  ScratchHome();
  ~ScratchHome();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The rehearsal of a script with its arguments. invalid: there is no such script, or a word is not an option.
Result<Rehearsal> prepare_rehearsal(const App& app, const std::string& file, const std::vector<std::string>& words,
                                    const ScratchHome& home);

}  // namespace rille::cli
