// One run of a script in a simulated world, as `rille simulate` and `rille plan` do it: the script is the real one, the
// clock and the cloud are not, and nothing of it touches RILLE_HOME.
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
  std::string script;  // absolute
  Value args;
  std::string home;  // a folder for what runs keep; made on demand
  std::shared_ptr<const engine::Lessons> lessons;
  bool unknown_calls_end_at_once = false;  // else they are errors
  std::int64_t days_max = 60;              // of virtual time
  // Called with the virtual time since the start. May be null.
  std::function<void(std::int64_t us, const Value& event)> event;
  std::function<void(std::string_view text)> print;
};

struct Rented {
  Value options;  // as the script asked
  lease::Lease lease;
};

struct Outcome {
  std::uint64_t seed = 0;
  Result<Value> result = Value();
  Micros cost_micros = 0;
  std::int64_t took_us = 0, lost_work_ms = 0;
  int preemptions = 0, machines = 0, left_alive = 0;
  int announced = 0;           // of the preemptions: its machine was left before
  std::vector<Rented> rented;  // when asked for
};

Outcome rehearse(const Rehearsal& what, const provider::sim::Options& weather, bool with_rented);

// What the runs of this script in `home` say about its calls. A home without a journal says nothing.
std::shared_ptr<const engine::Lessons> lessons_of(const std::string& home, const std::string& script);

// A folder that goes when this does.
class ScratchHome {
 public:
  ScratchHome();
  ~ScratchHome();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The rehearsal of a script with the words that follow it. invalid: there is no such script, or a word is no option.
Result<Rehearsal> prepare_rehearsal(const App& app, const std::string& file, const std::vector<std::string>& words,
                                    const ScratchHome& home);

}  // namespace rille::cli
