// Simulation: a world in which runs are rehearsed: a virtual clock, a cloud with agents on its machines, and a journal
// in memory. All of it outlives the simulated process, which is an Engine opened by Engine::open_simulated on a loop
// with the same clock. Every provider that a script names is replaced by the simulated one.
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
  // home: a folder for the runs' files; created on demand.
  static Result<std::unique_ptr<Simulation>> create(VirtualTime& time, provider::sim::Options options,
                                                    std::string home);

  VirtualTime& time;
  provider::sim::Cloud cloud;
  SimAgents agents;
  std::shared_ptr<store::Db> disk;
  std::string home;
  std::set<std::string> held;          // ids of the runs that are locked by a runner
  std::map<std::string, Value> asked;  // lease id -> the options of the lease's rent
  // Called before and after every transaction ("journal"), provider call ("provider create", ..) and agent request
  // ("agent start", ..); returns whether the process is still alive. If false, the operation never continues. Null: the
  // process never dies.
  std::function<bool(const std::string& where, bool done)> gate;

 private:
  Simulation(VirtualTime& t, provider::sim::Options options) : time(t), cloud(t, options), agents(cloud) {}
};

class Connector;
std::unique_ptr<Connector> make_connector(Simulation& world);

}  // namespace rille::engine
