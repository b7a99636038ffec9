// What a run does on its instances: rent and release, stage and get, call and exec. One agent connection per lease
// is kept and remade when it breaks. "Cannot reach" is not "failed": before a call is given up, the provider and the
// agent are asked. Private to runtime/workflow/engine; loop thread only.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/core/net/http.hpp"
#include "runtime/workflow/agent/client.hpp"
#include "runtime/workflow/engine/lease_session.hpp"
#include "runtime/workflow/engine/run.hpp"
#include "runtime/workflow/lease/manager.hpp"

namespace rille::engine {

class Connector;
class RunImpl;

class Calls {
 public:
  Calls(RunImpl& run, lease::Manager* leases, std::shared_ptr<Connector> connector);
  ~Calls();

  Async<lease::Lease> rent(std::string key, std::string name, std::string scope, Value options, std::int64_t leases_max,
                           CancelToken token);
  Async<> release(std::string lease_id);
  Async<> release_run();  // everything the run holds that is not detached
  Result<LeaseView> view(const std::string& lease_id) const;

  // When a call that died starts again, in wall time: as recorded (0: not), and how to record it.
  struct Postponed {
    std::int64_t until_us = 0;
    std::function<void(std::int64_t until_us)> record;
  };
  // Joins the call if the agent has it, starts it if not, and gives its result, which stays with the agent until
  // forget(). One whose process died starts again after a back-off, unless attempt after attempt brought no checkpoint
  // with a higher step. Cancelled: the agent is told.
  // `ran_on`: the generation of the machine that gave the result.
  Async<Value> call(std::string lease_id, std::string key, CallSpec spec, Postponed postponed, CancelToken token,
                    std::int64_t& ran_on);
  // The call's result is in the journal, or nobody wants it any more. Told with the next connection, or now.
  void forget(const std::string& lease_id, const std::string& key, std::string reason, bool now);
  // Gives `generation` besides: of the machine that has it now.
  Async<Value> stage(std::string lease_id, std::string from, std::string to, Value options, CancelToken token);
  Async<Value> get(std::string lease_id, std::string from, std::string to, Value options, CancelToken token);
  // Another machine for the lease, whatever becomes of this one; `options` differ from those of the rent.
  Async<LeaseView> replace(std::string lease_id, Value options, std::string why, CancelToken token);
  // Another type for its machine, while nothing runs there. resizing.cpp
  Async<LeaseView> resize(std::string lease_id, Value options, CancelToken token);
  // When its machine will be taken away, in seconds since 1970, or null.
  Async<Value> preempting(std::string lease_id, CancelToken token);
  // What the machines of these leases do: a list in their order, of readings or { error }. usage.cpp
  Async<Value> telemetry(std::vector<std::string> lease_ids, CancelToken token);
  Result<Value> standing(const std::string& lease_id) const;  // see instances.hpp
  // As long as this process runs the run: releases the lease when its ttl is over, which is then; and is there for its
  // machine, also while nobody uses that, for some end where nobody is for orphan_after. expiry.cpp
  void end_by(const std::string& lease_id, std::int64_t expires_us);
  // Starts the agent of a lease that is to end when it is idle: it is the agent that sees that.
  Task<void> wake(std::string lease_id);
  // What a lease's next machine must have, too: a row, once in the transaction that completes it. Specs: losses.cpp.
  static Value setup_of(const std::string& from, const std::string& to, const Value& options);
  static Value setup_of(const CallSpec& spec);
  store::Journal::Write setup_write(const std::string& lease_id, const Value& spec, std::int64_t generation) const;

 private:
  // What a call publishes goes to the run's home while it runs, the newest each time. A copy is whole or absent: it is
  // fetched beside its place (the agent's side checks every digest) and renamed. The call's result counts without it,
  // so a failure is only told, and only for the last. keeping.cpp
  struct Keeper {
    std::string lease, key;  // key: the call's, for its agent
    std::string folder;      // beneath the home's checkpoints/, the call's own: others may run beside it
    std::int64_t generation = 0;
    Value latest;
    std::int64_t kept_step = -1;
    bool busy = false;
    std::string warning;
  };
  static constexpr int reconnects_max = 20;  // in a row
  // One that can be worked with: where the lease's machine is lost and it wants another, on that, set up as this was.
  Async<std::shared_ptr<agent::AgentClient>> client(std::string lease_id, CancelToken token);
  // reach.cpp
  struct Reaching;
  Async<std::shared_ptr<agent::AgentClient>> reach(lease::Lease lease, CancelToken token);
  Async<std::shared_ptr<agent::AgentClient>> reached(lease::Lease lease, std::int64_t not_yet_us,
                                                     std::unique_ptr<agent::AgentClient> made);
  Async<> await_start(Reaching& reaching);  // a little; fails where it takes too long
  bool patient(const Reaching& reaching, const Error& why) const;
  void tell_starting(const Reaching& reaching, const std::string& why);
  // losses.cpp
  Async<std::shared_ptr<agent::AgentClient>> known_client(std::string lease_id, CancelToken token);
  // Whether an error from there may be that of a machine which is going: the lease wants another, and it is gone.
  Async<bool> lost(std::string lease_id, std::int64_t generation, CancelToken token);
  Async<> steady(std::string lease_id, CancelToken token);  // waits for it
  Async<> enter(std::string lease_id, LeaseSession::Phase phase, CancelToken token);
  void leave(const std::string& lease_id);
  Async<> move_on(std::string lease_id, std::int64_t generation, std::string why, Value options, CancelToken token);
  Async<> move_alone(std::string lease_id, std::int64_t generation, std::string why, Value options, CancelToken token);
  Async<> resize_alone(std::string lease_id, Value options, CancelToken token);
  Async<> end_resize(std::string lease_id, CancelToken token);  // that was begun, by whomever
  Async<bool> stood_still(std::string lease_id, std::int64_t before, CancelToken token);
  struct Setup {
    std::int64_t n = 0;
    std::string spec;
  };
  Result<std::vector<Setup>> owed_setups(const std::string& lease_id, std::int64_t generation) const;
  Async<> set_up(std::string lease_id, std::int64_t generation, std::shared_ptr<agent::AgentClient> agent,
                 CancelToken token);
  Async<> set_up_alone(std::string lease_id, std::int64_t generation, std::shared_ptr<agent::AgentClient> agent,
                       CancelToken token);
  Async<> set_up_one(std::string lease_id, std::int64_t n, std::int64_t generation, Value spec,
                     std::shared_ptr<agent::AgentClient> agent, CancelToken token);
  Async<> set_up_call(std::string lease_id, std::int64_t n, std::int64_t generation, Value spec,
                      std::shared_ptr<agent::AgentClient> agent, CancelToken token);
  // notices.cpp
  std::int64_t deadline_us(const std::string& lease_id, std::int64_t generation) const;  // 0: none is known
  void recall_notice(const lease::Lease& lease);
  void noticed(const std::string& lease_id, std::int64_t generation, std::int64_t deadline_us);
  void tell_working(const std::string& lease_id, std::int64_t generation);
  Task<void> tell_one(std::string lease_id, std::string key, LeaseSession::Working one);
  void watch_for_notice(const lease::Lease& lease);
  Task<void> watch(lease::Lease lease, std::int64_t every_ms);
  static bool has_left(const agent::CallStatus& status);
  Async<> move_after_notice(std::shared_ptr<Keeper> keeper, std::shared_ptr<agent::AgentClient> agent, Value saved,
                            CancelToken token);
  bool others_work(const std::string& lease_id, std::int64_t generation) const;
  Error not_live(const std::string& id, const std::optional<lease::Lease>& lease) const;
  // usage.cpp
  Async<Value> reading(std::string lease_id, CancelToken token);
  Task<void> follow(std::string lease_id, std::int64_t generation, std::shared_ptr<agent::AgentClient> agent);
  // expiry.cpp
  void keep_time();
  void look_around();
  Task<void> end_in_time(std::string lease_id);
  Task<void> meet(std::string lease_id);
  Error in_time(const std::string& lease_id, Error e) const;
  CancelToken::Registration bound(const std::string& lease_id, CancelSource& work);
  void record_kept(const Keeper& keeper, const Value& published, std::string here);
  Async<> restore(std::shared_ptr<Keeper> keeper, std::shared_ptr<agent::AgentClient> agent, CancelToken token);
  agent::StartRequest start_request(const CallSpec& spec, std::string call_key, std::int64_t generation) const;
  using Move = std::function<Async<agent::Transfer>(agent::AgentClient&, CancelToken)>;
  Async<Value> transfer(std::string lease_id, Move move, CancelToken token, std::int64_t* moved_to = nullptr);
  Async<Value> move_files(std::string lease_id, Move move, CancelToken token, std::int64_t* moved_to);
  Async<std::string> local_copy(std::string from, Value options, CancelToken token);
  agent::TransferProgress transfer_progress(std::string what);
  void use(const std::string& lease_id, int more);
  Async<> look_for_gpus(lease::Lease l, std::shared_ptr<agent::AgentClient> agent, CancelToken token);
  Task<void> keep(std::shared_ptr<Keeper> keeper, std::shared_ptr<agent::AgentClient> agent, CancelToken token);
  static std::string folder_of(const std::string& name, const std::string& key);
  Async<std::optional<Value>> get_kept(std::string lease_id, std::string from, std::string to);
  static void retire(const std::filesystem::path& folder, std::size_t count);
  Async<Value> run_call(std::string lease_id, std::string key, CallSpec spec, Postponed postponed, CancelToken token,
                        std::int64_t& ran_on);
  struct RunningCall;
  agent::AttachHandlers handlers(RunningCall& work, CancelToken token);
  void restarted(const RunningCall& work, const std::string& why, int attempt, std::int64_t delay_ms);
  Async<> restore_and_start(RunningCall& work, CancelToken token);
  Async<> keep_last(RunningCall& work, CancelToken token);
  Async<> begin_on(RunningCall& work, const lease::Lease& l, CancelToken token);
  Async<> wait_for_restart(RunningCall& work, const agent::CallStatus& ended, Postponed& postponed, CancelToken token);
  static Error gave_up(const std::string& name, int attempts, Error last);
  std::int64_t restart_delay_ms(const std::string& agent_key, int attempt, int idle_attempts) const;
  Task<void> tell_until_told(std::string lease_id);
  Async<> tell_unwanted(std::string lease_id, std::shared_ptr<agent::AgentClient> agent);
  std::string call_key(const std::string& lease_id, const std::string& key) const;
  LeaseSession& session(const std::string& lease_id) { return sessions_[lease_id]; }
  int users(const std::string& lease_id) const;

  RunImpl& run_;
  lease::Manager* leases_;
  std::shared_ptr<Connector> connector_;
  std::unique_ptr<net::HttpClient> http_;         // made when the first URL is staged
  std::map<std::string, LeaseSession> sessions_;  // by lease; none is erased
  std::int64_t beat_us_ = 0;                      // the run's last sign of life
  std::unique_ptr<Timer> clock_;
  CancelSource closed_;
};

}  // namespace rille::engine
