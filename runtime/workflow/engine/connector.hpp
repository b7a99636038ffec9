// Connector: how a run reaches the machines of its leases, and what is different where they are simulated. One per run
// for real machines; a simulation has one for all of its runs (simulation.hpp). Private to runtime/workflow/engine;
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

  // A connection to the machine's agent, which is installed if need be. network: there is no way to it now.
  virtual Async<std::unique_ptr<agent::AgentClient>> connect(Loop& loop, provider::Machine machine,
                                                             CancelToken token) = 0;
  // The machine has become another: its agent is looked for again.
  virtual void forget(const std::string& machine_id) = 0;

  // What a script asks for, as it is asked for here: of a query, of the offers among them, of a rent, of a resize, and
  // of a call.
  virtual void adapt_query(Value& query) const = 0;
  virtual void adapt_offers(Value& query) const = 0;
  virtual void adapt_rent(const std::string& lease_id, Value& options) = 0;
  virtual Result<Value> adapt_resize(Value options) const = 0;
  virtual void adapt_call(const CallSpec& spec, agent::StartRequest& request) const = 0;
  // Whether what is staged is read on this side. False: its declared size is all that counts, and is noted.
  virtual Result<bool> reads_source(const std::string& from, const Value& options) = 0;

  // Whether time passes without this process: prices change, machines miss a runner that is away or become idle, and
  // signals come at any moment.
  virtual bool real_time() const = 0;
  // How long until the provider is asked again whether the machine will be taken away; -1: never again.
  virtual std::int64_t next_look_ms(const lease::Lease& lease, std::int64_t every_ms) const = 0;
};

struct ConnectorOptions {
  std::string self_exe;
  std::function<std::string()> install_identity;  // null: none
  std::string cache;                              // a folder
};
std::unique_ptr<Connector> make_connector(ConnectorOptions options);

}  // namespace rille::engine
