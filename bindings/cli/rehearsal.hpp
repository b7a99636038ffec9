// A rehearsal, for `rille simulate` and `rille plan`: runs the real script once with a simulated clock and cloud. It
// does not touch the user's RILLE_HOME.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bindings/cli/app.hpp"
#include "bindings/host/grants.hpp"
#include "runtime/workflow/engine/simulation.hpp"

namespace rille::cli {

struct Rehearsal {
  std::string script;  // absolute path of the script
  Value args;
  host::Grants grants = host::Grants::everything();
  std::string home;  // RILLE_HOME of the rehearsed runs, a temporary folder; created on demand
  std::shared_ptr<const engine::Lessons> lessons;
  // whether a call whose duration is unknown takes no time; false: such a call is an error
  bool unknown_calls_end_at_once = false;
  std::int64_t days_max = 60;  // limit of the virtual time, in days
  // Called for each event with the virtual time in microseconds since the start. May be null.
  std::function<void(std::int64_t us, const Value& event)> event;
  std::function<void(std::string_view text)> print;
};

// Rehearses the script up to its call of rille.args. Error `invalid`: there is no such script, a word is not an option,
// or rille.args refuses the options. Success if the script ends otherwise before, or takes all of them.
Result<> check_script_arguments(App& app, const std::string& file, const std::vector<std::string>& words);

struct Rented {
  Value options;  // options that the script passed to rille.rent
  lease::Lease lease;
};

struct Outcome {
  std::uint64_t seed = 0;
  Result<Value> result = Value();
  Micros cost_micros = 0;
  std::int64_t took_us = 0, lost_work_ms = 0;
  int preemptions = 0, machines = 0, left_alive = 0;
  int announced = 0;            // preemptions announced early enough that the call left the machine before its end
  std::set<std::string> types;  // of the machines that the run rented: provider::sim::Type::id
  std::set<std::string> unknown_calls;  // whose result neither the script nor an earlier run tells: it was nil
  std::vector<Rented> rented;           // the machines that the run rented; filled only if requested
};

// The prices are list prices, as far as the list has any for the simulated cloud's types.
Outcome rehearse(const Rehearsal& what, const provider::sim::Options& weather, bool with_rented);

// A sum of a rehearsal: from a dollar on in cents, below it with up to four decimals, or six if these were all zero.
std::string shown_sum(Micros micros);

// Durations of calls, learned from earlier runs of this script in `home`; empty if `home` has no journal.
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

// Prepares the rehearsal of a script with the arguments `words`. invalid: there is no such script, or a word is not
// an option.
Result<Rehearsal> prepare_rehearsal(const App& app, const std::string& file, const std::vector<std::string>& words,
                                    const ScratchHome& home);

}  // namespace rille::cli
