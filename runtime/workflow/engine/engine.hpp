// Engine: one per runtime. Holds the journal, the providers and the leases of one RILLE_HOME, starts and resumes
// runs, and answers what people ask about them. Several engines, in one process or many, may share a home: one
// runner per run is kept by an flock on the run's folder and a fencing epoch in the journal. Loop thread only.
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
  lease::GpuUse gpu_use;                          // what this build can compute on; null: no GPU is refused
  std::function<std::string()> install_identity;  // agent::InstallOptions::identity; null: the build alone
  std::string home;                               // RILLE_HOME; made when missing (mode 0700)
  std::string self_exe;                           // the `rille` command, for agents on this machine
  std::string providers_file;  // the settings of providers (provider/providers.hpp); "": `local` alone
  net::MailServer mail;        // for alerts by e-mail
};

struct RunSpec {
  std::string script;  // absolute path, or a name such as "-e" or "repl"
  Mode mode = Mode::durable;
  Value args;                    // the run's input
  std::string id;                // "" = make one
  std::string parent;            // the run whose script starts it; "": none
  std::string tag;               // whose budget it shares; "" = its parent's, or none
  std::int64_t deadline_ms = 0;  // from now on; then it is cancelled, with `timeout`. 0: none
};

struct ReapSpec {
  ReapSpec() = default;  // not an aggregate: see loop/task.hpp
  bool in_background = false;
  bool only_due = false;  // rows whose time has come; asks no provider about anything else
  std::string now;        // a run whose leases end at once, though they would be held for its resumption
  std::string unknown;    // a machine that ends although it is in no journal here
};

// A place in a record, from which on it is left out.
struct Cut {
  std::string run;                     // whose record it now is
  std::string key, source;             // the first entry that is left out, as `rille show` prints it
  std::string because_of;              // set: an earlier place than the one asked for, since this lease was open there
  std::int64_t kept = 0, dropped = 0;  // entries
  std::vector<std::string> rented_anew;  // of a fork: names of leases that were open there and get machines of its own
};

// One row of the table `runs`.
struct RunRow {
  std::string id, script, mode, state, host, parent, forked_from, tag;
  Value args, result;
  std::optional<Error> error;
  std::optional<Error> cancel_reason;  // set: it was told to end, and unwinds or has unwound
  std::int64_t epoch = 0, created_us = 0, updated_us = 0, ended_us = 0, pid = 0;
  std::string seed;              // the run whose random numbers these are: a fork's are its origin's
  std::int64_t deadline_us = 0;  // 0: none
  Value shown_args() const;      // without the secrets of URLs
  Value to_value() const;
};

class Engine {
 public:
  // io: the home cannot be made or written; config: it is on a network file system, or of a newer format.
  static Result<std::unique_ptr<Engine>> open(Loop& loop, EngineOptions options);
  // The runner of a simulated world, which outlives it. No file is locked or written.
  static Result<std::unique_ptr<Engine>> open_simulated(Loop& loop, Simulation& simulation);
  ~Engine();

  // Begins a new run; nothing executes before Run::execute.
  Async<std::unique_ptr<Run>> start(RunSpec spec, RunHooks hooks);
  // Takes a run over to continue it. state: it has ended, or another process runs it (named); invalid: no such run
  // (did you mean); integrity: its runner died and the journal is damaged. An id may be shortened to a unique
  // beginning, or be "last".
  Async<std::unique_ptr<Run>> resume(std::string id, RunHooks hooks);
  // The same with another script (an absolute path) and the modules beside it. They are pinned once the whole record
  // has been followed without divergence, before anything new begins; until then the run keeps those that it has.
  Async<std::unique_ptr<Run>> resume_with(std::string id, std::string script, RunHooks hooks);

  // A new run, suspended, with the record of `run` up to the entry `key`. Machines are never shared: where a lease was
  // open, the cut is made before its rent; or, with `rerent`, the fork has a lease of its own in its place, which gets
  // a machine, and on it what was staged and set up until there, when it is first used. `run` itself is only read, and
  // may be alive. invalid: no such entry (did you mean); state: not a durable run.
  Async<Cut> fork(std::string run, std::string key, bool rerent = false);
  // Forgets that entry and all that were completed after it; the run can be resumed then, also one that had ended.
  // Leases that it still holds stay; for one that has been released since, the cut is made before its rent, which then
  // rents anew. Signals that forgotten entries took are in the inbox again. state: the run is alive.
  Async<Cut> invalidate(std::string run, std::string key);
  // The key of the entry whose error ended the run. state: it has not failed, or by an error of the script itself.
  Result<std::string> failed_at(const std::string& run) const;

  // Newest first; those that scripts have started only when asked for.
  Result<std::vector<RunRow>> runs(int limit, bool with_children = false) const;
  Result<std::vector<RunRow>> children(const std::string& run) const;  // that this run's script has started
  Result<RunRow> run(const std::string& id) const;                     // by id, beginning or "last"
  Result<std::vector<Value>> entries(const std::string& run) const;
  // The audit trail: of one run, or of all ("").
  Result<std::vector<Value>> events(const std::string& run) const;
  bool alive(const std::string& run) const;  // a runner holds it now
  Async<> signal(std::string run, std::string name, Value payload);
  // Ends a run that no process runs without its script: gives back what its rows say it holds, trying again for some
  // seconds. state: it has ended, or is alive, or something is still rented (then its state is `cleanup`).
  Async<> abandon(std::string run, lease::Manager::Event event);
  // Those that its script has started, and nobody runs. diverged: these, too, which keep what they hold else.
  Async<> abandon_children(std::string run, bool diverged, lease::Manager::Event event);
  // A run that a script starts: to its end, from wherever its row stands. It may be under way in another fiber or
  // process; then its outcome is waited for. state: the id is another run's, of another script or arguments.
  // `paused`: its parent stops with it, when it is told that the child is paused, and returns when it is cancelled.
  using Paused = std::function<Async<>(Error)>;
  Async<Value> run_child(ChildSpec spec, std::string parent, std::shared_ptr<ChildPrograms> programs, CancelToken token,
                         Paused paused);
  // One that an earlier process began for a fiber that is cancelled now: it is resumed, and cancelled where it stands.
  Async<> end_child(std::string id, std::shared_ptr<ChildPrograms> programs, Error why);
  // Ends a run whose script could not be loaded: nothing of it has begun.
  Async<> fail(std::string run, Error why);
  // Marks a run that stops here without unwinding (SIGTERM, SIGHUP): `resume` continues it.
  Result<> suspend(Run& run);

  lease::Manager& leases() { return *leases_; }
  Pools& pools() { return *pools_; }
  Alerts* alerts() { return alerts_.get(); }  // null: simulated, nobody is told
  provider::Registry& providers() { return *registry_; }
  store::Journal& journal() { return *journal_; }
  const std::string& home() const { return options_.home; }
  // Whether reap() would find anything to do for the home itself: something rented, or an alert to be sent.
  Result<bool> owes() const;
  // Ends what no run will end, and sends the alerts that are due. In the background it touches nothing of a run that is
  // alive, and costs one look-up when nothing is rented. state: the run to end now is alive.
  Async<lease::ReapReport> reap(ReapSpec spec);

 private:
  Engine(Loop& loop, EngineOptions options) : loop_(loop), options_(std::move(options)) {}
  static Result<> refuse_ended(const RunRow& row);
  Result<std::optional<RunRow>> exactly(const std::string& id) const;
  Async<Value> execute_child(std::unique_ptr<Run> run, std::string script, std::shared_ptr<ChildPrograms> programs,
                             CancelToken token, Paused paused);
  Async<std::unique_ptr<Run>> take(RunRow row, bool fresh, RunHooks hooks, std::string edited = std::string());
  enum class Open : std::uint8_t { undo, keep, rerent };  // what becomes of leases that were open at a cut
  struct Place;
  Result<Place> cut_at(const RunRow& row, const std::string& key, Open open) const;
  std::string run_home(const std::string& id) const { return options_.home + "/runs/" + id; }

  Loop& loop_;
  EngineOptions options_;
  // Of a simulation; null: files, and real machines.
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
