// While a workflow runs, the reaper terminates in the background the machines that no run will terminate: once at the
// start of a run and once at its exit. The reaper never delays the script, does not touch machines of live runs, and
// costs one index look-up if nothing is rented. What the reaper did not finish stays in the journal for the next
// reaper. Loop thread only.
#pragma once

#include "bindings/cli/app.hpp"

namespace rille::cli {

class Reaper {
 public:
  explicit Reaper(App& app);  // starts the reaper; the work happens on the loop
  // Terminates machines that became due since the start of the run, for at most 5 s or until `stop` returns true.
  void at_exit(const std::function<bool()>& stop);

 private:
  struct State {
    App& app;
    bool busy = false;
  };
  static void begin(const std::shared_ptr<State>& state, engine::ReapSpec spec);
  static Task<void> work(std::shared_ptr<State> state, engine::ReapSpec spec);
  std::shared_ptr<State> state_;
};

}  // namespace rille::cli
