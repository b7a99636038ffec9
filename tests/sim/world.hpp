// One seed's world: a simulated cloud, a journal in memory, and a runner that dies at places which the seed chooses,
// before and after each transaction and each provider call. What the world knows and the runner does not: which effects
// have happened, and what the cloud has really made and billed.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/engine/engine.hpp"
#include "runtime/engine/simulation.hpp"
#include "tests/unit/engine/guest.hpp"

namespace rille::torture {

using engine::Run;
using engine::test::CppGuest;
using provider::sim::Dice;

// "Sometimes": each of these must have happened somewhere in the seeds.
using Sometimes = std::map<std::string, std::int64_t>;

struct World;
struct Process {
  World& world;
  Run& run;
  CppGuest& guest;
};
using Script = CppGuest::Body (*)(Process);
struct Kind {
  const char* name;
  Script script;
};
const std::vector<Kind>& kinds();  // scripts.cpp

struct World {
  World(std::uint64_t seed, bool calm, bool trace);
  ~World();

  // From start to the end of the run, through all deaths, and then until nothing is owed. What is wrong, if anything.
  std::string live(const Kind& kind, const std::string& expected);
  Result<Value> result();                       // of the run's row
  std::string digest() const;                   // the same for the same seed, always

  const std::uint64_t seed;
  const bool calm, trace;
  Dice dice;
  VirtualTime time;
  std::unique_ptr<engine::Simulation> sim;
  std::map<std::string, int> effects;           // by step: how often its body ran
  std::set<std::string> finished;               // steps whose outcome the script has seen: never again
  std::map<std::string, std::set<std::string>> set_up;  // by machine: what was done again on it
  std::string wrong;                            // what a script found out
  Sometimes seen;
  std::string trail;                            // a running hash of all that was told

  void tell(const std::string& line);

 private:
  bool place(const char* where, bool done);
  std::optional<Result<Value>> process(const Kind& kind);
  void reap(bool in_background);
  std::string settle();
  std::string check_books(Loop& loop, engine::Engine& engine);

  bool dead_ = false, may_die_ = true;
  int places_ = 0, deaths_ = 0;
  double death_rate_ = 0;
  std::string home_;                            // copies of checkpoints; outlives processes, as the world does
};

}  // namespace rille::torture
