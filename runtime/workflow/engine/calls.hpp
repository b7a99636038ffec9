// Calls: a run's operations on its instances: rent and release, stage and get, call and exec. Keeps one agent
// connection per lease and reconnects when it breaks. A broken connection alone does not fail a call: first the
// provider and the agent are asked what happened. Private to runtime/workflow/engine; loop thread only.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "runtime/core/net/http.hpp"
#include "runtime/workflow/agent/client.hpp"
#include "runtime/workflow/engine/fanout.hpp"
#include "runtime/workflow/engine/lease_session.hpp"
#include "runtime/workflow/engine/rank_shares.hpp"
#include "runtime/workflow/engine/run.hpp"
#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/transfer/stage.hpp"

namespace rille::transfer {
class StoredCheckpoints;
}

namespace rille::engine {

class Connector;
class RunImpl;
struct Staging;

class Calls {
 public:
  Calls(RunImpl& run, lease::Manager* leases, std::shared_ptr<Connector> connector);
  ~Calls();

  Async<lease::Lease> rent(std::string key, std::string name, std::string scope, Value options, lease::LeaseLimit most,
                           CancelToken token);
  // Which of the run's open scopes has a lease.
  enum class Holder { none, asker, another };
  using HolderOf = std::function<Holder(const std::string& lease_id)>;
  // The home's volume of that name, or a new one. volumes.cpp
  Async<lease::Lease> volume(std::string key, std::string name, std::string scope, Value options,
                             lease::LeaseLimit most, HolderOf holder_of, CancelToken token);
  Result<VolumeView> volume_view(const std::string& lease_id) const;
  // What a rent of that name finds among the leases of the home: the lease to use if the options say `adopt`; nullopt:
  // it rents. own_id: the lease that it would rent. Fails with `state`: a detached lease has the name (name_detached),
  // several have it, or its machine does not fit the options (adopt_differs). adopting.cpp
  Result<std::optional<lease::Lease>> adoptable(const std::string& own_id, const std::string& name,
                                                const Value& options);
  // A lease of another run is only used: this run neither ends nor replaces nor sets it up.
  void borrow(const lease::Lease& lease);
  bool borrowed(const std::string& lease_id) const { return borrowed_.contains(lease_id); }
  // Fails with `state`, code borrowed, for a lease of another run; detached_too: one that is detached may be changed.
  Result<> check_own(const std::string& lease_id, const char* verb, bool detached_too = false) const;
  void forget_detached() { detached_read_ns_ = -1; }  // after a detach: names are read again
  Async<> release(std::string lease_id);
  Async<> release_run();  // all leases of the run that are not detached
  Result<LeaseView> view(const std::string& lease_id) const;

  // When a dead call restarts, in wall time: the recorded time (0: none), and a function that records a new one.
  struct Postponed {
    std::int64_t until_us = 0;
    std::function<void(std::int64_t until_us)> record;
  };
  // Joins the call if the agent already has it, otherwise starts it. Returns the call's result, which the agent keeps
  // until forget(). If the call's process dies, the call restarts after a back-off; it fails after too many consecutive
  // attempts without a checkpoint of a higher step. If `token` is cancelled, the agent is told to end the call. Sets
  // `ran_on` to the generation of the machine that gave the result.
  Async<Value> call(std::string lease_id, std::string key, CallSpec spec, Postponed postponed, CancelToken token,
                    std::int64_t& ran_on);
  // Tells the agent to drop the call's result, because the journal has it or the script no longer wants it. If `now` is
  // false, the agent is told at the next connection.
  void forget(const std::string& lease_id, const std::string& key, std::string reason, bool now);
  // Copies files to the lease's machine. The result also has `generation`, the machine's generation.
  Async<Value> stage(std::string lease_id, std::string from, std::string to, Value options, CancelToken token);
  Async<Value> get(std::string lease_id, std::string from, std::string to, Value options, CancelToken token);
  // Replaces the lease's machine, even if the machine is healthy. `options` override the options of the rent.
  Async<LeaseView> replace(std::string lease_id, Value options, std::string why, CancelToken token);
  // Changes the machine's type while nothing runs on it. resizing.cpp
  Async<LeaseView> resize(std::string lease_id, Value options, CancelToken token);
  // When the lease's machine will be preempted, in seconds since 1970; null: no notice.
  Async<Value> preempting(std::string lease_id, CancelToken token);
  // Usage of the leases' machines, in order: a reading or { error } each. usage.cpp
  Async<Value> telemetry(std::vector<std::string> lease_ids, CancelToken token);
  Result<Value> standing(const std::string& lease_id) const;  // see instances.hpp
  // While this process runs the run: releases the lease at expires_us, its ttl; and connects to its machine regularly
  // even if unused, because some machines end themselves when no runner connects for orphan_after. expiry.cpp
  void end_by(const std::string& lease_id, std::int64_t expires_us);
  // Starts the agent of a lease with idle_after, because the agent detects that the machine is idle.
  Task<void> wake(std::string lease_id);
  // A setup is an operation to repeat on the lease's next machines. It is one row, written in the transaction that
  // completes the operation. setup_of makes the row's spec, whose fields lost_machines.cpp describes.
  static Value setup_of(const std::string& from, const std::string& to, const Value& options);
  static Value setup_of(const CallSpec& spec);
  store::Journal::Write setup_write(const std::string& lease_id, const Value& spec, std::int64_t generation) const;

 private:
  Async<> end_left_volume(std::string id);  // volumes.cpp
  // Copies a running call's newest checkpoint to the run's home, or to a store. A copy is whole or absent: at home it
  // is fetched beside its place (the agent's side checks every digest) and renamed. The call's result does not depend
  // on it, so a failure is only a warning: of the last one, and at once where no later one will be kept either.
  // keeping.cpp
  struct Keeper {
    std::string lease, key;  // key: of the call on its agent
    std::string folder;      // this call's folder below the run's checkpoints/
    std::int64_t generation = 0;
    Value latest;
    std::int64_t kept_step = -1;                                    // of the last one that was tried
    std::int64_t safe_step = -1;                                    // of the last one that was kept
    std::shared_ptr<transfer::StoredCheckpoints> stored = nullptr;  // null: they are kept in the home
    std::int64_t restored = 0;  // generation whose machine was given the store's newest checkpoint
    bool busy = false;
    std::optional<Error> fault = {};  // why the last one that was tried is not kept
    std::string told = {};            // of the last warning of this
  };
  static constexpr int reconnects_max = 20;  // reconnects in a row before giving up
  // Connects to the lease's machine, set up and ready. If the machine is lost and the lease's options allow it,
  // replaces the machine and repeats the setups.
  Async<std::shared_ptr<agent::AgentClient>> client(std::string lease_id, CancelToken token);
  // reach.cpp
  struct Reaching;
  Async<std::shared_ptr<agent::AgentClient>> reach(lease::Lease lease, CancelToken token);
  Async<std::shared_ptr<agent::AgentClient>> reached(lease::Lease lease, std::int64_t not_yet_us,
                                                     std::unique_ptr<agent::AgentClient> made);
  Async<> await_start(Reaching& reaching);  // pauses before the next poll; fails after too long a wait
  bool patient(const Reaching& reaching, const Error& why) const;
  void tell_starting(const Reaching& reaching, const std::string& why);
  // lost_machines.cpp
  Async<std::shared_ptr<agent::AgentClient>> known_client(std::string lease_id, CancelToken token);
  // Remembers the machine as one that lies, if the error says so.
  void note_lie(const std::string& lease_id, std::int64_t generation, const Error& e);
  // Call after an error: whether its cause is that the machine is gone, or lies, and the lease gets another machine.
  Async<bool> lost(std::string lease_id, std::int64_t generation, CancelToken token);
  Async<> steady(std::string lease_id, CancelToken token);  // waits for phase steady
  Async<> enter(std::string lease_id, LeaseSession::Phase phase, CancelToken token);
  void leave(const std::string& lease_id);
  Async<> move_on(std::string lease_id, std::int64_t generation, std::string why, Value options, CancelToken token);
  Async<> move_alone(std::string lease_id, std::int64_t generation, std::string why, Value options, CancelToken token);
  Async<> resize_alone(std::string lease_id, Value options, CancelToken token);
  Async<> end_resize(std::string lease_id, CancelToken token);  // finishes a resize begun by any fiber or process
  Async<bool> stood_still(std::string lease_id, std::int64_t before, CancelToken token);
  struct Setup {
    std::int64_t n = 0;
    std::string spec;
  };
  // adopting.cpp
  Result<> none_detached(const std::string& name);
  std::int64_t epoch_for(const lease::Lease& lease) const;  // with which the lease's agent is asked
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
  std::int64_t deadline_us(const std::string& lease_id, std::int64_t generation) const;  // 0: no preemption notice
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
  static constexpr const char* cannot_reach = "cannot_reach";  // the code of AgentClient::pull's error
  // staging.cpp
  using StagingPtr = std::shared_ptr<Staging>;
  using Carry = std::function<Async<Value>(Move, CancelToken)>;  // makes the move with a connected agent
  Async<StagingPtr> plan_stage(std::string lease_id, std::string from, std::string to, Value options,
                               CancelToken token);
  Async<> plan_objects(StagingPtr s, CancelToken token);
  Async<> plan_local(StagingPtr s, CancelToken token);
  static Result<> plan_web(Staging& s);
  Async<> choose_way(StagingPtr s, CancelToken token);
  Result<bool> is_near(const std::string& lease_id) const;
  Async<std::string> local_copy(std::string from, std::string sha256, CancelToken token);
  Async<std::string> fetch_once(std::string from, std::string destination, transfer::StageOptions options,
                                CancelToken token);
  // pulling.cpp
  Async<Value> carry_out(StagingPtr s, Carry carry, CancelToken token);
  Async<agent::Transfer> move_staged(StagingPtr s, agent::AgentClient& agent, CancelToken token);
  Async<> move_files_of(StagingPtr s, agent::AgentClient& agent, CancelToken token);
  Async<> move_next(StagingPtr s, agent::AgentClient& agent, CancelToken token);
  Async<> move_one(StagingPtr s, std::size_t i, agent::AgentClient& agent, CancelToken token);
  Async<> pull_one(StagingPtr s, std::size_t i, agent::AgentClient& agent, agent::TransferProgress progress,
                   CancelToken token);
  static Async<agent::PullAddress> sign_one(StagingPtr s, std::size_t i, CancelToken token);
  Result<std::optional<Fanout::Wanted>> passed_on(const Staging& s, std::size_t i, const agent::AgentClient& agent);
  Async<agent::PullAddress> sign_shared(StagingPtr s, std::size_t i, Fanout::Wanted wanted,
                                        std::shared_ptr<bool> joined, CancelToken token);
  Async<> check_room(StagingPtr s, agent::AgentClient& agent, CancelToken token);
  Async<> fetch_here(StagingPtr s, CancelToken token);
  Async<> fetch_objects_here(StagingPtr s, CancelToken token);
  void tell_staged(const Staging& s);
  agent::TransferProgress transfer_progress(std::string what);
  Room disk_room() const;
  void use(const std::string& lease_id, int more);
  Async<> look_for_gpus(lease::Lease l, std::shared_ptr<agent::AgentClient> agent, CancelToken token);
  Task<void> keep(std::shared_ptr<Keeper> keeper, std::shared_ptr<agent::AgentClient> agent, CancelToken token);
  void tell_not_kept(Keeper& keeper, const char* what);
  Result<> open_store(const CallSpec& spec, Keeper& keeper);
  Async<> record_lineage(std::shared_ptr<Keeper> keeper);
  struct Holdings;
  Async<std::string> keep_one(std::shared_ptr<Keeper> keeper, std::shared_ptr<agent::AgentClient> agent,
                              Value published, CancelToken token);
  Async<std::string> keep_at_home(std::shared_ptr<Keeper> keeper, std::shared_ptr<Holdings> held, Value published,
                                  CancelToken token);
  Async<std::string> keep_in_store(std::shared_ptr<Keeper> keeper, std::shared_ptr<Holdings> held, Value published,
                                   CancelToken token);
  // keeping_shares.cpp
  Async<> find_shares(std::shared_ptr<Holdings> held, std::shared_ptr<agent::AgentClient> agent, Value published,
                      CancelToken token);
  static Async<> list_shares(std::shared_ptr<Holdings> held, std::string manifest, CancelToken token);
  Async<RankShares> shares_of_rank(std::string training, std::int64_t rank, CancelToken token);
  Async<> restore_from_store(std::shared_ptr<Keeper> keeper, std::shared_ptr<agent::AgentClient> agent,
                             CancelToken token);
  Async<Value> get_stored(std::string address, std::string to, CancelToken token);
  static std::string folder_of(const std::string& name, const std::string& key);
  Async<std::optional<Value>> get_kept(std::string lease_id, std::string from, std::string to);
  static void retire(const std::filesystem::path& folder, std::size_t count);
  Async<Value> run_call(std::string lease_id, std::string key, CallSpec spec, Postponed postponed, CancelToken token,
                        std::int64_t& ran_on);
  struct RunningCall;
  void identify(RunningCall& work, const std::string& key) const;
  Result<> open_metrics(RunningCall& work);
  Result<> keep_metrics(RunningCall& work, std::string_view lines, std::int64_t at);
  agent::AttachHandlers handlers(RunningCall& work, CancelToken token);
  void work_on(RunningCall& work, const lease::Lease& l);
  bool may_pass_again(const std::string& lease_id, const Error& e) const;
  void restarted(const RunningCall& work, const std::string& why, int attempt, std::int64_t delay_ms);
  Async<> restore_and_start(RunningCall& work, CancelToken token);
  static Result<agent::CallStatus> in_order(RunningCall& work, Result<agent::CallStatus> status);
  void count_attempt(RunningCall& work, agent::CallStatus& ended);
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
  std::unique_ptr<net::HttpClient> http_;  // created when the first URL is staged
  // By destination of a download in progress: the fibers that wait for it.
  std::map<std::string, std::vector<Future<Result<std::string>>>> downloads_;
  std::set<std::string> borrowed_;                // leases of other runs that this run uses, by id
  std::map<std::string, std::string> detached_;   // detached leases of the home: name -> id
  std::int64_t detached_read_ns_ = -1;            // when these were read; -1: read them again
  std::map<std::string, LeaseSession> sessions_;  // by lease id; entries are never erased
  Fanout fanout_;
  SharesTold shares_;
  std::int64_t beat_us_ = 0;  // time of the run's last heartbeat
  std::unique_ptr<Timer> clock_;
  CancelSource closed_;
};

}  // namespace rille::engine
