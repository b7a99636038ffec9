// RunControl: the interface to one run for the program that hosts it: identity, hooks, execution, cancellation,
// pinned sources. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/base/guest.hpp"
#include "runtime/core/base/use.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/agent/metric.hpp"

namespace rille::engine {

// A home whose journal is in memory and ends with the engine. Its runs have no folder, and cannot rent machines,
// because a machine would outlive its record.
inline constexpr std::string_view in_memory_home = ":memory:";

enum class Mode { durable, session, ephemeral };

// Limits that the host program sets for a run, whatever its script says. -1: no limit.
struct RunLimits {
  RunLimits() = default;
  std::int64_t spend_micros = -1;  // the highest budget that rille.budget may set
  std::int64_t leases_max = -1;    // most leases that may be held at a time
  std::string leases_of;           // by this run and its child runs; "": by the run itself and its own
  // Called before every connection that staging makes; null: all are allowed.
  std::function<Result<>(const std::string& host, const std::string& port)> may_connect;
  std::shared_ptr<MemoryUse> memory;  // counts results until they are recorded; may be null
  std::shared_ptr<DiskUse> disk;      // counts what the run writes below the home; may be null
};

class Run;
struct RunHooks;

// The code of a run, in any language, ready to execute. Destroyed before the run.
class Program {
 public:
  virtual ~Program() = default;
  virtual Guest& guest() = 0;
  virtual FunctionRef main() = 0;
};

// How the host program loads the child runs that a script starts.
class ChildPrograms {
 public:
  virtual ~ChildPrograms() = default;
  virtual RunHooks hooks(const std::string& run) = 0;  // the child's hooks
  virtual Result<std::unique_ptr<Program>> load(Run& child, const std::string& script) = 0;
  // Whether a child's id may name a run that another run started: then its result is taken, or it is continued.
  virtual bool joins_runs_of_others() const { return true; }
};

// Callbacks to the host program. All are optional; they are called on the loop thread.
struct RunHooks {
  std::function<void(std::string_view text)> print;     // prints output of the script and its calls, unchanged
  std::function<void(const Value& progress)> progress;  // {what, done, total, unit, files, files_total, loss, rate, ..}
  std::function<void(const Value& event)> event;        // {event, ...}: rent, live, released, step, retry, warning
  std::function<void(std::string_view line)> metric;    // takes each metric (agent/metric.hpp); null: a file of the run
  std::shared_ptr<ChildPrograms> children;              // null: this run cannot start child runs
};

class RunControl {
 public:
  virtual ~RunControl() = default;
  virtual const std::string& id() const = 0;
  virtual Mode mode() const = 0;
  virtual Loop& loop() = 0;
  virtual const RunHooks& hooks() const = 0;
  // The run's folder <RILLE_HOME>/runs/<id>, created on demand; for an ephemeral run the working directory;
  // in_memory_home: there is none.
  virtual std::string home() const = 0;
  virtual Value args() const = 0;  // the run's input, as given by --x and `args`

  // Sets the run's limits; call before execute.
  virtual void limit(const RunLimits& limits) = 0;
  // Runs `main` as fiber 1, then ends the run's children, releases its leases and records the result. Call once. Once
  // the returned task has ended, the guest may be destroyed before the run.
  virtual Async<Value> execute(Guest& guest, FunctionRef main, Value argument) = 0;
  // Cancels the run as Ctrl-C and `rille cancel` do: unwinds the script with this reason, then cleans up. Takes effect
  // when every fiber waits; if a fiber computes without ever waiting, the guest calls cancel_now. cancel_waits: a
  // cancel was requested and has not taken effect. A reason of kind timeout (an exceeded limit) becomes the run's
  // result even if the script catches it.
  virtual void cancel(Error reason) = 0;
  virtual bool cancel_waits() const = 0;
  virtual void cancel_now() = 0;
  // Cancels the cleanup of a cancelled run, too: what waits in a defer is woken with this reason.
  virtual void stop_cleanup(Error reason) = 0;
  // Called by code that computes for long, because no timer of the loop fires meanwhile: cancels the steps and runs
  // whose time limit has passed, and returns the milliseconds until the next check; -1: no check is needed.
  virtual std::int64_t look_at_clock() = 0;
  // Whether the run is replaying its record, so that the script's output was already shown by an earlier process.
  virtual bool replaying() const = 0;
  // Keeps a metric in a file of the run's folder, unless the run is replaying, is simulated or has no folder. Fails
  // with `io` or `quota` (a limit of disk).
  virtual Result<> metric(const agent::Metric& metric) = 0;
  // The pinned source of a module or script: from `load` the first time, from the journal afterwards.
  virtual Result<std::string> pinned(const std::string& module, const std::function<Result<std::string>()>& load) = 0;
};

}  // namespace rille::engine
