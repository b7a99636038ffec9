// The reaper beside a workflow: ends what no run will end, in the background from the start of a run, and once more at
// its exit. It never delays the script, touches nothing of a run that is alive, and costs one look-up in an index when
// nothing is rented. What it could not finish stays in the journal for the next. Loop thread only.
#pragma once

#include "bindings/cli/app.hpp"

namespace rille::cli {

class Reaper {
 public:
  explicit Reaper(App& app);  // begins; the loop does the rest
  // Ends what has become due meanwhile, for 5 s at most or until `stop` holds.
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
