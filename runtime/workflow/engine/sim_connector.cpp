// Connects to simulated machines, and replaces every provider that a script names by the simulated provider.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/core/base/units.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/instances.hpp"
#include "runtime/workflow/engine/simulation.hpp"
#include "runtime/workflow/provider/catalogue/workload.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/sim/catalogue.hpp"

namespace rille::engine {

namespace {

class SimConnector final : public Connector {
 public:
  explicit SimConnector(Simulation& world) : world_(world) {}

  Async<std::unique_ptr<agent::AgentClient>> connect(Loop& loop, lease::Lease, provider::Machine machine, std::int64_t,
                                                     CancelToken token) override {
    return world_.agents.connect(loop, std::move(machine.id), std::move(token));
  }
  void forget(const std::string&) override {}

  void adapt_query(Value& query) const override {
    if (Value::Object* asked = query.as_object())
      for (const char* named : {"provider", "providers"}) asked->erase(named);
  }
  void adapt_offers(Value& query) const override {
    adapt_query(query);
    provider::Workload::leave_out(query);
  }
  void adapt_rent(const std::string& lease_id, Value& options) override {
    world_.asked[lease_id] = options;
    adapt_query(options);
    if (Value::Object* asked = options.as_object())
      for (const std::string& option : provider::rent_options()) asked->erase(option);
    provider::Workload::leave_out(options);
  }
  // The simulated cloud has its own kinds of volumes: of a real provider's, its first one.
  void adapt_volume(Value& options) const override {
    adapt_query(options);
    const std::string kind = options.text("kind");
    for (const provider::sim::Type& known : provider::sim::volume_types())
      if (kind == known.id) return;
    if (Value::Object* asked = options.as_object()) asked->erase("kind");
  }
  // The simulated cloud does not know a real provider's type name: drop it, so that the other options choose the type.
  Result<Value> adapt_resize(Value options) const override {
    const std::string type = options.text("type");
    for (const provider::sim::Type& known : provider::sim::types())
      if (type.empty() || type == known.id) return options;
    options.as_object()->erase("type");
    for (const char* other : {"gpu", "vcpus", "memory"})
      if (!options[other].is_null()) return options;
    Error e = make_error(ErrorKind::config, fmt::format("the simulated cloud has no type '{}'", type),
                         "also say which GPUs that type has, as in type = \"p4d.24xlarge\", gpu = \"A100:8\"");
    e.code = "no_simulation";
    return e;
  }
  void adapt_call(const CallSpec& spec, agent::StartRequest& request) const override {
    if (!spec.sim.is_null()) request.spec.set("sim", spec.sim);
  }
  Result<bool> reads_source(const std::string& from, const Value& options) override {
    if (std::string size = options["sim"].text("size"); !size.empty()) {
      RILLE_TRY(std::int64_t bytes, parse_size_bytes(size));
      world_.agents.declare_size(from, bytes);
    }
    return false;
  }

  bool real_time() const override { return false; }
  // Skips the polls before the machine's preemption notice, because they would find nothing.
  std::int64_t next_look_ms(const lease::Lease& lease, std::int64_t every_ms) const override {
    const provider::sim::Box* box = world_.cloud.find(lease.machine_id);
    if (!box || !box->notice_us) return -1;
    const std::int64_t blind_ms = (box->notice_us - world_.cloud.now_us()) / 1000;
    return every_ms * std::max<std::int64_t>(1, (blind_ms + every_ms - 1) / every_ms);
  }

 private:
  Simulation& world_;
};

}  // namespace

std::unique_ptr<Connector> make_connector(Simulation& world) { return std::make_unique<SimConnector>(world); }

}  // namespace rille::engine
