// A world that outlives the processes in it: a simulated cloud, a journal in memory, and a runner that dies where its
// conditions say, before and after each transaction, each provider call and each request to an agent. What the world
// knows and the runner does not: which effects have happened, and what the cloud has really made and billed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/workflow/engine/engine.hpp"
#include "runtime/workflow/engine/simulation.hpp"

namespace rille::torture {

using engine::Run;
using provider::sim::Dice;

// "Sometimes": each of these must have happened somewhere.
using Sometimes = std::map<std::string, std::int64_t>;

struct World;

// What a run executes: the C++ or Lua code behind it is made anew in each process.
struct Script {
  using Load = std::function<Result<std::unique_ptr<engine::Program>>(World&, Loop&, Run&, const std::string& script)>;
  std::string name, result;                     // what it comes to, whatever happens on the way
  Load load;                                    // also of the runs that it starts; `script` says which
  std::string path = {};                        // what the run's row says; "": the name
  provider::sim::Options (*cloud)() = nullptr;  // the exhaustive test's. Null: nothing goes wrong there
  void (*prepare)(World&) = nullptr;            // before the first process
  std::int64_t cancel_ms = 0;                   // from when on a person wants the run cancelled; 0: never
  bool steps_vary = false;                      // which steps it comes to depends on when its processes die
  void (*event)(World&, const Value&) = nullptr;
};

// Where a process may die.
struct Place {
  const std::string& where;     // "journal", "provider create", "agent start", ..
  bool done = false;            // before or after it
  int process = 0, number = 0;  // of the process; in it: both from 1
  int total = 0;                // in this world, from 1
};

struct Conditions {
  provider::sim::Options cloud;
  bool trace = false;
  std::string home;                                   // for what runs keep beside the journal; it goes with the world
  std::function<bool(const Place&)> dies;             // null: never
  std::function<void(World&, int deaths)> meanwhile;  // after each death, before the next process
};

// A path for the home of a world of this process; it is not made.
std::string scratch_path(const std::string& name);

struct World {
  explicit World(Conditions conditions);
  ~World();

  // From start to the end of the run, through all deaths, and then until nothing is owed. What is wrong, if anything.
  std::string live(const Script& script);
  bool alone = false;          // the run is not resumed after a death; its rows end its machines
  std::string outcome();       // of the run's row: its result, or "error .."
  std::string digest() const;  // the same for the same conditions, always
  // `rille gc` in a process of its own, which may die, too. now: also what `run` holds for its resumption.
  bool reap(bool in_background, const std::string& now = "");

  // What scripts tell. A body runs: refused once the script has seen its step's outcome, and, of one that happens
  // once, the second time.
  void body_runs(const std::string& step, bool once = false);
  void body_finished(const std::string& step) { finished.insert(step); }
  void send_signal(std::int64_t after_ms, std::string name, std::string json);
  void tell(const std::string& line);

  const Conditions conditions;
  Dice dice;
  VirtualTime time;
  std::unique_ptr<engine::Simulation> sim;
  std::map<std::string, int> effects;                   // by step: how often its body ran
  std::set<std::string> finished;                       // steps whose outcome the script has seen: never again
  std::map<std::string, int> inside;                    // by pool: permits that this process uses
  std::map<std::string, std::set<std::string>> set_up;  // by machine: what was done again on it
  std::string wrong;                                    // what a script found out
  Sometimes seen;
  std::vector<int> lives;  // the places of each process
  bool dead = false;       // the present process has died

 private:
  bool place(const std::string& where, bool done);
  std::optional<Result<Value>> process(const Script& script);
  void heard(const Script& script, const Value& event);
  void leave_to_reaper();
  std::string settle();
  std::string delete_kept(Loop& loop, engine::Engine& engine);
  std::string check_books(Loop& loop, engine::Engine& engine);

  bool may_die_ = true;
  int places_ = 0, deaths_ = 0;
  std::string trail_;  // a running hash of all events
};

}  // namespace rille::torture
