#include "runtime/workflow/engine/simulation.hpp"

#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/engine.hpp"

namespace rille::engine {

Result<std::unique_ptr<Simulation>> Simulation::create(VirtualTime& time, provider::sim::Options options,
                                                       std::string home) {
  std::unique_ptr<Simulation> made(new Simulation(time, options));
  RILLE_TRY(made->disk, store::Journal::make_disk());
  made->agents.set_home(home);
  made->home = std::move(home);
  return made;
}

Result<std::unique_ptr<Engine>> Engine::open_simulated(Loop& loop, Simulation& simulation) {
  EngineOptions options;
  options.home = simulation.home;
  std::unique_ptr<Engine> engine(new Engine(loop, std::move(options)));
  engine->locks_ = &simulation.held;
  engine->connector_ = make_connector(simulation);
  store::Journal::Gate writes;
  provider::sim::Gate calls;
  if (simulation.gate) {
    writes = [&simulation](bool done) { return simulation.gate("journal", done); };
    calls = [&simulation](const char* what, bool done) {
      return simulation.gate(std::string("provider ") + what, done);
    };
    simulation.agents.set_gate(
        [&simulation](const char* what, bool done) { return simulation.gate(std::string("agent ") + what, done); });
  }
  engine->journal_ = store::Journal::in_memory(loop, simulation.disk, std::move(writes));
  engine->registry_ = std::make_unique<provider::Registry>();
  RILLE_CHECK(engine->registry_->add(provider::sim::make_provider(loop, simulation.cloud, std::move(calls))));
  engine->leases_ = std::make_unique<lease::Manager>(loop, *engine->journal_, *engine->registry_, "5155155155ab");
  engine->pools_ = std::make_unique<Pools>(loop, *engine->journal_,
                                           [e = engine.get()](const std::string& run) { return e->alive(run); });
  return engine;
}

}  // namespace rille::engine
