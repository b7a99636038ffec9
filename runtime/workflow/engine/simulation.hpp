// Simulation: a world in which runs are rehearsed. A virtual clock, a cloud with agents on its machines, and a journal
// in memory; all of it outlives the process in it, which is an Engine opened by Engine::open_simulated on a loop with
// the same clock. Whatever provider a script names, the simulated one answers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "runtime/core/loop/virtual_time.hpp"
#include "runtime/core/store/journal.hpp"
#include "runtime/workflow/engine/sim_agents.hpp"
#include "runtime/workflow/provider/sim/sim.hpp"

namespace rille::engine {

struct Simulation {
  // home: a folder for what runs keep beside the journal; made on demand.
  static Result<std::unique_ptr<Simulation>> create(VirtualTime& time, provider::sim::Options options,
                                                    std::string home);

  VirtualTime& time;
  provider::sim::Cloud cloud;
  SimAgents agents;
  std::shared_ptr<store::Db> disk;
  std::string home;
  std::set<std::string> held;          // runs that have a runner
  std::map<std::string, Value> asked;  // the options of each rent, by lease
  // Asked before and after every transaction ("journal"), every provider call ("provider create", ..) and every request
  // to an agent ("agent start", ..) whether the process still lives; false, and nothing of it goes on. Null: it lives
  // for ever.
  std::function<bool(const std::string& where, bool done)> gate;

 private:
  Simulation(VirtualTime& t, provider::sim::Options options) : time(t), cloud(t, options), agents(cloud) {}
};

class Connector;
std::unique_ptr<Connector> make_connector(Simulation& world);

}  // namespace rille::engine
