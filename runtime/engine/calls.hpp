// What a run does on its instances: rent and release, stage and get, call and exec. One agent connection per lease
// is kept and remade when it breaks. "Cannot reach" is not "failed": before a call is given up, the provider and the
// agent are asked. Private to runtime/engine; loop thread only.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "runtime/agent/client.hpp"
#include "runtime/engine/run.hpp"
#include "runtime/lease/manager.hpp"
#include "runtime/net/http.hpp"

namespace rille::engine {

class RunImpl;

class Calls {
 public:
  Calls(RunImpl& run, lease::Manager* leases, std::string self_exe);
  ~Calls();

  Async<lease::Lease> rent(std::string key, std::string name, std::string scope, Value options,
                           std::int64_t leases_max, CancelToken token);
  Async<> release(std::string lease_id);
  Async<> release_run();               // everything the run holds that is not detached
  Result<LeaseView> view(const std::string& lease_id) const;

  // When a call that died starts again, in wall time: as recorded (0: not), and how to record it.
  struct Postponed {
    std::int64_t until_us = 0;
    std::function<void(std::int64_t until_us)> record;
  };
  // Joins the call if the agent has it, starts it if not, and gives its result, which stays with the agent until
  // forget(). One whose process died starts again after a back-off, unless attempt after attempt brought no checkpoint
  // with a higher step. Cancelled: the agent is told.
  Async<Value> call(std::string lease_id, std::string key, CallSpec spec, Postponed postponed, CancelToken token);
  // The call's result is in the journal, or nobody wants it any more. Told with the next connection, or now.
  void forget(const std::string& lease_id, const std::string& key, std::string reason, bool now);
  Async<Value> stage(std::string lease_id, std::string from, std::string to, Value options, CancelToken token);
  Async<Value> get(std::string lease_id, std::string from, std::string to, Value options, CancelToken token);
  // Tells a web hook; a warning in the audit trail when it cannot be told.
  Task<void> post(std::string url, Value body);

 private:
  static constexpr int reconnects_max = 20;  // in a row
  Async<std::unique_ptr<agent::AgentClient>> connect(provider::Machine machine, CancelToken token);
  Async<std::shared_ptr<agent::AgentClient>> client(std::string lease_id, CancelToken token);
  using Move = std::function<Async<agent::Transfer>(agent::AgentClient&)>;
  Async<Value> transfer(std::string lease_id, Move move, CancelToken token);
  Async<Value> move_files(std::string lease_id, Move move, CancelToken token);
  Async<std::string> local_copy(std::string from, Value options, CancelToken token);
  agent::TransferProgress transfer_progress(std::string what);
  // For the ledger: what is neither starting nor in use is idle.
  void use(const std::string& lease_id, int more);
  std::map<std::string, int> in_use_;
  struct Keeper;
  Task<void> keep(std::shared_ptr<Keeper> keeper, std::shared_ptr<agent::AgentClient> agent, CancelToken token);
  static void retire(const std::filesystem::path& folder, std::size_t count);
  Async<Value> run_call(std::string lease_id, std::string key, CallSpec spec, Postponed postponed, CancelToken token);
  static Error gave_up(const std::string& name, int attempts, Error last);
  std::int64_t restart_delay_ms(const std::string& agent_key, int attempt, int idle_attempts) const;
  Task<void> settle(std::string lease_id);
  Async<> tell_unwanted(std::string lease_id, std::shared_ptr<agent::AgentClient> agent);
  std::string call_key(const std::string& lease_id, const std::string& key) const;

  RunImpl& run_;
  lease::Manager* leases_;
  std::string self_exe_;
  std::unique_ptr<net::HttpClient> http_;  // made when the first URL is staged
  std::map<std::string, std::shared_ptr<agent::AgentClient>> clients_;
  std::map<std::string, std::map<std::string, std::string>> unwanted_;  // lease -> call key on the agent -> reason
  std::set<std::string> settling_;         // leases with a settle() under way
  CancelSource closed_;
};

}  // namespace rille::engine
