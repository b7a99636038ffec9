// Engine: one per runtime. Holds the journal, providers and leases of one RILLE_HOME, starts and resumes runs, and
// answers queries about them. Several engines, in one or many processes, may share a home: an flock on the run's folder
// and a fencing epoch in the journal ensure one runner per run. Loop thread only.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/store/blobs.hpp"
#include "runtime/core/store/journal.hpp"
#include "runtime/workflow/engine/alerts.hpp"
#include "runtime/workflow/engine/run.hpp"
#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/provider/provider.hpp"

namespace rille::engine {

class Connector;
struct Simulation;

struct EngineOptions {
  lease::GpuUse gpu_use;                          // which GPUs this build can use; null: every GPU is accepted
  std::function<std::string()> install_identity;  // agent::InstallOptions::identity; null: the build alone
  std::string home;                               // RILLE_HOME; created if missing (mode 0700)
  std::string self_exe;                           // the `rille` command, for agents on this machine
  std::string providers_file;                     // provider settings (provider/providers.hpp); "": `local` alone
  net::MailServer mail;                           // for alerts by e-mail
};

struct RunSpec {
  std::string script;  // absolute path, or a name such as "-e" or "repl"
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
  std::string now;        // a run whose leases end now instead of waiting for a resume
  std::string unknown;    // a machine in no journal here that is ended anyway
};

// A position in a record; entries from there on are dropped.
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
  std::string seed;              // run id that seeds random numbers; a fork has its origin's
  std::int64_t deadline_us = 0;  // 0: the run has no deadline
  Value shown_args() const;      // secrets in URLs are redacted
  Value to_value() const;
};

class Engine {
 public:
  // io: the home cannot be created or written; config: it is on a network file system, or of a newer format.
  static Result<std::unique_ptr<Engine>> open(Loop& loop, EngineOptions options);
  // Opens the runner of a simulated world, which outlives it. Locks and writes no file.
  static Result<std::unique_ptr<Engine>> open_simulated(Loop& loop, Simulation& simulation);
  ~Engine();

  // Begins a new run; nothing executes before Run::execute.
  Async<std::unique_ptr<Run>> start(RunSpec spec, RunHooks hooks);
  // Takes over a run to continue it. state: it has ended, or another process runs it (named); invalid: no such run (did
  // you mean); integrity: its runner died and the journal is damaged. An id may be shortened to a unique beginning, or
  // be "last".
  Async<std::unique_ptr<Run>> resume(std::string id, RunHooks hooks);
  // The same with another script (an absolute path) and its modules. They are pinned once the whole record has been
  // replayed without divergence, before anything new begins; until then the run keeps its old sources.
  Async<std::unique_ptr<Run>> resume_with(std::string id, std::string script, RunHooks hooks);

  // Creates a suspended run with the record of `run` up to the entry `key`. Machines are never shared: if a lease was
  // open there, the cut is before its rent; or, with `rerent`, the fork has its own lease instead, which gets a machine
  // with the same staged files and setups when it is first used. `run` is only read and may be alive. invalid: no such
  // entry (did you mean); state: not a durable run.
  Async<Cut> fork(std::string run, std::string key, bool rerent = false);
  // Drops that entry and all completed after it; the run can then be resumed, even if it had ended. Leases it still
  // holds stay; for a lease released since, the cut is before its rent, which then rents again. Signals taken by
  // dropped entries return to the inbox. state: the run is alive.
  Async<Cut> invalidate(std::string run, std::string key);
  // The key of the entry whose error ended the run. state: it did not fail, or failed in the script itself.
  Result<std::string> failed_at(const std::string& run) const;

  // Newest first; runs started by scripts only with_children.
  Result<std::vector<RunRow>> runs(int limit, bool with_children = false) const;
  Result<std::vector<RunRow>> children(const std::string& run) const;  // started by this run's script
  Result<RunRow> run(const std::string& id) const;                     // by id, prefix or "last"
  Result<std::vector<Value>> entries(const std::string& run) const;
  // The audit trail: of one run, or of all ("").
  Result<std::vector<Value>> events(const std::string& run) const;
  bool alive(const std::string& run) const;  // whether a process runs the run now
  Async<> signal(std::string run, std::string name, Value payload);
  // Ends a run that has no process, without its script: releases the leases of its rows, retrying for some seconds.
  // state: it has ended, or is alive, or something is still rented (then its state is `cleanup`).
  Async<> abandon(std::string run, lease::Manager::Event event);
  // Ends a run's children that have no process. diverged: also diverged children, which otherwise keep their leases.
  Async<> abandon_children(std::string run, bool diverged, lease::Manager::Event event);
  // Runs a child to its end from its current state. If another fiber or process runs it already, waits for its outcome.
  // state: the id belongs to a run with another script or arguments. `paused`: called when the child is paused, so that
  // its parent stops too; returns when the parent is cancelled.
  using Paused = std::function<Async<>(Error)>;
  Async<Value> run_child(ChildSpec spec, std::string parent, std::shared_ptr<ChildPrograms> programs, CancelToken token,
                         Paused paused);
  // Ends a child that an earlier process began for a fiber that is now cancelled: resumes it, and cancels it where it
  // stands.
  Async<> end_child(std::string id, std::shared_ptr<ChildPrograms> programs, Error why);
  // Ends a run whose script could not be loaded, so that nothing was executed.
  Async<> fail(std::string run, Error why);
  // Marks a run that stops here without unwinding (SIGTERM, SIGHUP) as suspended; `resume` continues it.
  Result<> suspend(Run& run);

  lease::Manager& leases() { return *leases_; }
  Pools& pools() { return *pools_; }
  Alerts* alerts() { return alerts_.get(); }  // null: simulated, no alerts
  provider::Registry& providers() { return *registry_; }
  store::Journal& journal() { return *journal_; }
  const std::string& home() const { return options_.home; }
  // Whether reap() has work for the home itself: an open lease, or an alert to send.
  Result<bool> owes() const;
  // Ends leases that no run will end, and sends due alerts. In the background it leaves live runs alone, and costs one
  // lookup if nothing is rented. state: the run given by `now` is alive.
  Async<lease::ReapReport> reap(ReapSpec spec);

 private:
  Engine(Loop& loop, EngineOptions options) : loop_(loop), options_(std::move(options)) {}
  static Result<> refuse_ended(const RunRow& row);
  Result<std::optional<RunRow>> exactly(const std::string& id) const;
  Async<Value> execute_child(std::unique_ptr<Run> run, std::string script, std::shared_ptr<ChildPrograms> programs,
                             CancelToken token, Paused paused);
  Async<std::unique_ptr<Run>> take(RunRow row, bool fresh, RunHooks hooks, std::string edited = std::string());
  enum class Open : std::uint8_t { undo, keep, rerent };  // handling of leases open at a cut
  struct Place;
  Result<Place> cut_at(const RunRow& row, const std::string& key, Open open) const;
  std::string run_home(const std::string& id) const { return options_.home + "/runs/" + id; }

  Loop& loop_;
  EngineOptions options_;
  // Set in a simulation; null: the engine uses lock files and real machines.
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
