// Connector: the interface through which a run reaches the machines of its leases, real or simulated. For real machines
// each run has a connector; all runs of a simulation share one (simulation.hpp). Private to runtime/workflow/engine;
// loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/agent/client.hpp"
#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::engine {

struct CallSpec;

class Connector {
 public:
  virtual ~Connector() = default;

  // Connects to the machine's agent, installing it if necessary. Fails with `network` if the machine cannot be reached.
  virtual Async<std::unique_ptr<agent::AgentClient>> connect(Loop& loop, lease::Lease lease, provider::Machine machine,
                                                             std::int64_t epoch, CancelToken token) = 0;
  // Call after a resize of the machine: the next connect checks again where the machine's agent is installed.
  virtual void forget(const std::string& machine_id) = 0;

  // These change a script's request before it is used; a simulation replaces providers and types here.
  virtual void adapt_query(Value& query) const = 0;
  virtual void adapt_offers(Value& query) const = 0;
  virtual void adapt_rent(const std::string& lease_id, Value& options) = 0;
  virtual Result<Value> adapt_resize(Value options) const = 0;
  virtual void adapt_call(const CallSpec& spec, agent::StartRequest& request) const = 0;
  // Whether stage reads the source files. False in a simulation: only the declared size matters, and is recorded.
  virtual Result<bool> reads_source(const std::string& from, const Value& options) = 0;

  // Whether time passes while this process is away: prices change, machines become idle or end without a runner, and
  // signals arrive at any moment.
  virtual bool real_time() const = 0;
  // Milliseconds until the provider is asked again for a preemption notice; -1: never.
  virtual std::int64_t next_look_ms(const lease::Lease& lease, std::int64_t every_ms) const = 0;
  // Replaces what the options of a volume say of real providers.
  virtual void adapt_volume(Value& options) const = 0;
};

struct ConnectorOptions {
  std::string self_exe;
  std::function<std::string()> install_identity;  // null: no identity
  std::string cache;                              // the folder of the staging cache
};
std::unique_ptr<Connector> make_connector(ConnectorOptions options);

}  // namespace rille::engine
