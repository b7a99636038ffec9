// Connects to agents on real machines, by the channel (such as ssh) that the provider gives for each machine.
#include "runtime/workflow/engine/connector.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "runtime/core/base/places.hpp"
#include "runtime/workflow/agent/install.hpp"
#include "runtime/workflow/provider/cloud/host_key.hpp"
#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/secret.hpp"

namespace rille::engine {

namespace {

class ByChannel final : public Connector {
 public:
  explicit ByChannel(ConnectorOptions options) : options_(std::move(options)) {}

  Async<std::unique_ptr<agent::AgentClient>> connect(Loop& loop, lease::Lease lease, provider::Machine machine,
                                                     std::int64_t epoch, CancelToken token) override {
    if (machine.channel == ChannelSpec())  // without a channel, the agent would run on this machine
      co_return make_error(ErrorKind::network,
                           fmt::format("the machine {} has no address to connect to yet", machine.id),
                           "tried again by itself until its provider has told one")
          .with_retry();
    agent::ClientOptions options;
    options.agent_argv = {options_.self_exe, "agent"};
    options.withheld = provider::secret_variables();
    options.generation = lease.generation;
    options.epoch = epoch;
    if (secret_.empty()) { RILLE_CO_TRY(secret_, provider::installation_secret(installation_folder() + "/ssh")); }
    options.token = provider::agent_token(secret_, lease.tag);
    if (!machine.channel.argv_prefix.empty()) {
      RILLE_CO_TRY(options.agent_argv, co_await agent_there(loop, machine, token));
    }
    co_return co_await agent::AgentClient::connect(loop, machine.channel, options, token);
  }
  void forget(const std::string& machine_id) override { installed_.erase(machine_id); }

  void adapt_query(Value&) const override {}
  void adapt_volume(Value&) const override {}
  void adapt_offers(Value&) const override {}
  void adapt_rent(const std::string&, Value&) override {}
  Result<Value> adapt_resize(Value options) const override { return options; }
  void adapt_call(const CallSpec&, agent::StartRequest&) const override {}
  Result<bool> reads_source(const std::string&, const Value&) override { return true; }

  bool real_time() const override { return true; }
  std::int64_t next_look_ms(const lease::Lease&, std::int64_t every_ms) const override { return every_ms; }

 private:
  // Checks once per process and machine whether the agent is installed; installs it if it is not.
  Async<std::vector<std::string>> agent_there(Loop& loop, provider::Machine machine, CancelToken token) {
    if (const auto known = installed_.find(machine.id); known != installed_.end()) co_return known->second;
    agent::InstallOptions options;
    options.self_exe = options_.self_exe;
    if (options_.install_identity) options.identity = options_.install_identity();
    options.cache = options_.cache;
    auto keys = agent::release_keys();
    if (!keys) {
      keys.error().code = agent::not_installed;
      co_return std::move(keys).error();
    }
    options.keys = std::move(*keys);
    RILLE_CO_TRY(std::vector<std::string> words,
                 co_await agent::install(loop, machine.channel, std::move(options), token));
    // At the first connection no agent runs, so no call can see the new key. A failure leaves the machine reachable.
    (void)co_await provider::cloud::renew_host_key(loop, machine.channel, installation_folder() + "/ssh", token);
    installed_[machine.id] = words;
    co_return words;
  }

  ConnectorOptions options_;
  std::string secret_;                                         // the installation's secret; "": not read yet
  std::map<std::string, std::vector<std::string>> installed_;  // machine id -> the command that starts its agent
};

}  // namespace

std::unique_ptr<Connector> make_connector(ConnectorOptions options) {
  return std::make_unique<ByChannel>(std::move(options));
}

}  // namespace rille::engine
