// Connector: how a run reaches its leases' machines, and what differs for simulated ones. One per run for real
// machines; one per simulation, shared by its runs (simulation.hpp). Private to runtime/workflow/engine; loop thread
// only.
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

  // Connects to the machine's agent, installing it if necessary. network: the machine cannot be reached now.
  virtual Async<std::unique_ptr<agent::AgentClient>> connect(Loop& loop, provider::Machine machine,
                                                             CancelToken token) = 0;
  // After a resize of the machine: forgets where its agent was found.
  virtual void forget(const std::string& machine_id) = 0;

  // Adapt a script's requests to this world: a query, an offers query, a rent, a resize, a call.
  virtual void adapt_query(Value& query) const = 0;
  virtual void adapt_offers(Value& query) const = 0;
  virtual void adapt_rent(const std::string& lease_id, Value& options) = 0;
  virtual Result<Value> adapt_resize(Value options) const = 0;
  virtual void adapt_call(const CallSpec& spec, agent::StartRequest& request) const = 0;
  // Whether staged files are read on this side. False: only their declared size matters, and is recorded.
  virtual Result<bool> reads_source(const std::string& from, const Value& options) = 0;

  // Whether time passes while this process is away: prices change, machines become idle or end without a runner, and
  // signals arrive at any moment.
  virtual bool real_time() const = 0;
  // How long until the provider is asked again for a preemption notice; -1: never.
  virtual std::int64_t next_look_ms(const lease::Lease& lease, std::int64_t every_ms) const = 0;
};

struct ConnectorOptions {
  std::string self_exe;
  std::function<std::string()> install_identity;  // null: no identity
  std::string cache;                              // the folder of the staging cache
};
std::unique_ptr<Connector> make_connector(ConnectorOptions options);

}  // namespace rille::engine
