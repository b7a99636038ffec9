// Engine: one per runtime. Holds the journal, providers and leases of one RILLE_HOME, starts and resumes runs, and
// answers queries about them. Several engines, in one or many processes, may share a home: an flock on the run's folder
// and a fencing epoch in the journal ensure one runner per run. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/store/blobs.hpp"
#include "runtime/core/store/journal.hpp"
#include "runtime/workflow/engine/alerts.hpp"
#include "runtime/workflow/engine/run.hpp"
#include "runtime/workflow/lease/reaper.hpp"
#include "runtime/workflow/provider/provider.hpp"

namespace rille::engine {

class Connector;
struct Simulation;

struct EngineOptions {
  lease::GpuUse gpu_use;                          // which GPUs this build can use; null: every GPU is accepted
  std::function<std::string()> install_identity;  // agent::InstallOptions::identity; null: the build alone
  std::string home;                               // RILLE_HOME; created if missing (mode 0700). in_memory_home: no disk
  std::string self_exe;                           // the `rille` command, for agents on this machine
  std::string providers_file;                     // provider settings (provider/providers.hpp); "": `local` alone
  net::MailServer mail;                           // for alerts by e-mail
};

struct RunSpec {
  std::string script;  // absolute path of the script, or a name such as "-e" or "repl"
  Mode mode = Mode::durable;
  Value args;                    // the run's input
  std::string id;                // the new run's id; "": a generated id
  std::string parent;            // the run whose script starts this run; "": no parent
  std::string tag;               // the budget tag; "": the parent run's tag, if any
  std::int64_t deadline_ms = 0;  // the run is cancelled with `timeout` after this time; 0: no limit
};

struct ReapSpec {
  ReapSpec() = default;  // not an aggregate: see loop/task.hpp
  bool in_background = false;
  bool only_due = false;  // only leases whose end is due; asks no provider for machines
  std::string now;        // id of a run whose leases end now instead of waiting for a resume; "": no run
  std::string unknown;    // id of a machine to end although the journal has no lease for it; "": no machine
};

// The result of fork or invalidate: the position in a record from which on entries were dropped.
struct Cut {
  std::string run;                       // the run with the resulting record
  std::string key, source;               // the first dropped entry, as `rille show` prints it
  std::string because_of;                // not "": this open lease forced an earlier cut than requested
  std::int64_t kept = 0, dropped = 0;    // number of record entries
  std::vector<std::string> rented_anew;  // a fork's open leases that get new machines
};

// One row of the table `runs`.
struct RunRow {
  std::string id, script, mode, state, host, parent, forked_from, tag;
  Value args, result;
  std::optional<Error> error;
  std::optional<Error> cancel_reason;  // set: the run was cancelled, and unwinds or has unwound
  std::int64_t epoch = 0, created_us = 0, updated_us = 0, ended_us = 0, pid = 0;
  // space-separated names of the modules that the host program offered when the run started
  std::string host_modules;
  std::string seed;              // run id that seeds random numbers; a fork has its origin's
  std::int64_t deadline_us = 0;  // 0: the run has no deadline
  Value shown_args() const;      // secrets in URLs are redacted
  Value to_value() const;
};

class Engine {
 public:
  // Opens the home. Fails with `io` if the home cannot be created or written, and with `config` if it is on a network
  // file system or has the format of a newer version.
  static Result<std::unique_ptr<Engine>> open(Loop& loop, EngineOptions options);
  // Opens an engine in a simulation, which must outlive the engine. Locks and writes no file.
  static Result<std::unique_ptr<Engine>> open_simulated(Loop& loop, Simulation& simulation);
  ~Engine();

  // Begins a new run; nothing executes before Run::execute.
  Async<std::unique_ptr<Run>> start(RunSpec spec, RunHooks hooks);
  // Takes over a run to continue it. `id` may be shortened to a unique beginning, or be "last". Fails with `state` if
  // the run has ended or another process runs it, with `invalid` if there is no such run, and with `integrity` if the
  // run's process died and the journal is damaged.
  Async<std::unique_ptr<Run>> resume(std::string id, RunHooks hooks);
  // Resumes a run with another script (an absolute path) and that script's modules. The new sources are pinned once the
  // whole record has been replayed without divergence, before any new operation begins.
  Async<std::unique_ptr<Run>> resume_with(std::string id, std::string script, RunHooks hooks);

  // Creates a suspended run, the fork, whose record is a copy of the record of `run` before the entry `key`. The two
  // runs never share a machine. If a lease was open at that entry, the copy ends before the lease's rent; with
  // `rerent`, the fork gets its own lease instead, whose machine is rented and set up in the same way at its first use.
  // `run` is only read and may be running. Fails with `invalid` if there is no such entry, and with `state` if the run
  // is not durable.
  Async<Cut> fork(std::string run, std::string key, bool rerent = false);
  // Drops the entry `key` and all entries completed after it; the run can then be resumed, even if it had ended. Leases
  // that the run still holds stay. If a lease was open at that entry and has been released since, entries are dropped
  // from the lease's rent on, so that the resumed run rents again. Signals taken by dropped entries return to the
  // inbox. Fails with `state` if a process runs the run.
  Async<Cut> invalidate(std::string run, std::string key);
  // The key of the entry whose error ended the run. Fails with `state` if the run did not fail, or if the error came
  // from the script itself and not from an entry.
  Result<std::string> failed_at(const std::string& run) const;

  // The newest `limit` runs, newest first. Child runs, which scripts start, are included only if with_children is true.
  Result<std::vector<RunRow>> runs(int limit, bool with_children = false) const;
  Result<std::vector<RunRow>> children(const std::string& run) const;  // runs that the script of `run` started
  Result<RunRow> run(const std::string& id) const;                     // finds a run by id, unique prefix, or "last"
  Result<std::vector<Value>> entries(const std::string& run) const;
  // The audit trail of one run; "": of all runs.
  Result<std::vector<Value>> events(const std::string& run) const;
  // The pinned texts of the run's script and modules, by name. Names that begin with ':' are not code.
  Result<std::map<std::string, std::string>> sources(const std::string& run) const;
  bool alive(const std::string& run) const;  // whether a process runs the run now
  Async<> signal(std::string run, std::string name, Value payload);
  // Ends a run that no process runs, without its script: releases the run's leases, retrying for some seconds. Fails
  // with `state` if the run has ended, if a process runs it, or if a machine is still rented (the run's state is then
  // `cleanup`).
  Async<> abandon(std::string run, lease::Manager::Event event);
  // Ends the run's child runs that no process runs. `diverged`: also end diverged children, which otherwise keep their
  // leases.
  Async<> abandon_children(std::string run, bool diverged, lease::Manager::Event event);
  // Runs a child run to its end from its current state. If another fiber or process already runs the child, waits for
  // the child's outcome. Fails with `state` if the id belongs to a run with another script or other arguments. `paused`
  // is called when the child is paused, so that the parent is suspended too; it returns when the parent is cancelled.
  using Paused = std::function<Async<>(Error)>;
  Async<Value> run_child(ChildSpec spec, std::string parent, std::shared_ptr<ChildPrograms> programs, CancelToken token,
                         Paused paused);
  // Ends a child run that an earlier process began for a fiber that is now cancelled: resumes and cancels it, for its
  // cleanup.
  Async<> end_child(std::string id, std::shared_ptr<ChildPrograms> programs, Error why);
  // Ends a run whose script could not be loaded, so that nothing was executed.
  Async<> fail(std::string run, Error why);
  // Marks a run that stops here without unwinding (SIGTERM, SIGHUP) as suspended; `resume` continues it.
  Result<> suspend(Run& run);

  // Offers a module of the host program to scripts of this engine's runs. Runs started from now on need it: resuming
  // one without the module fails with `state` and leaves the run unchanged.
  void offer_module(const std::string& name) { host_modules_.insert(name); }
  Result<> has_modules_of(const RunRow& row) const;

  lease::Manager& leases() { return *leases_; }
  Pools& pools() { return *pools_; }
  Alerts* alerts() { return alerts_.get(); }  // null: simulated, no alerts
  provider::Registry& providers() { return *registry_; }
  store::Journal& journal() { return *journal_; }
  const std::string& home() const { return options_.home; }
  // Whether reap() would have work: the home has an open lease, or an alert to send.
  Result<bool> owes() const;
  // Ends leases that no run will end, and sends due alerts. With in_background, leases of running runs are not touched,
  // and a home without open leases costs only one query. Fails with `state` if a process runs the run `now`.
  Async<lease::ReapReport> reap(ReapSpec spec);

 private:
  Engine(Loop& loop, EngineOptions options) : loop_(loop), options_(std::move(options)) {}
  static Result<> refuse_ended(const RunRow& row);
  static Result<std::unique_ptr<Engine>> open_in_memory(Loop& loop, EngineOptions options);
  Result<std::optional<RunRow>> exactly(const std::string& id) const;
  Async<Value> execute_child(std::unique_ptr<Run> run, std::string script, std::shared_ptr<ChildPrograms> programs,
                             CancelToken token, Paused paused);
  Async<std::unique_ptr<Run>> take(RunRow row, bool fresh, RunHooks hooks, std::string edited = std::string());
  enum class Open : std::uint8_t { undo, keep, rerent };  // what to do with a lease that is open at a cut
  struct CutPoint;
  Result<CutPoint> cut_at(const RunRow& row, const std::string& key, Open open) const;
  std::string run_home(const std::string& id) const { return options_.home + "/runs/" + id; }

  Loop& loop_;
  EngineOptions options_;
  std::set<std::string> host_modules_;
  std::set<std::string> held_;  // used as locks_ if the home is in memory
  // Set in a simulation and in memory; null: the engine uses lock files.
  std::set<std::string>* locks_ = nullptr;  // runs that have a runner
  std::shared_ptr<Connector> connector_;
  std::unique_ptr<store::Journal> journal_;
  std::shared_ptr<const store::Blobs> blobs_ = std::make_shared<store::Blobs>(options_.home + "/blobs");
  std::unique_ptr<provider::Registry> registry_;
  std::unique_ptr<lease::Manager> leases_;
  std::unique_ptr<Pools> pools_;
  std::unique_ptr<Alerts> alerts_;
};

}  // namespace rille::engine
