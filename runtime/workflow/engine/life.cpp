// The life of a run: execution, settling, events, pinned sources.
#include <unistd.h>

#include <array>
#include <filesystem>

#include "runtime/core/base/id.hpp"
#include "runtime/core/store/audit.hpp"
#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/engine.hpp"
#include "runtime/workflow/engine/measuring.hpp"
#include "runtime/workflow/engine/run_impl.hpp"
#include "runtime/workflow/engine/working_folder.hpp"
#include "runtime/workflow/lease/reaper.hpp"

namespace rille::engine {

RunImpl::RunImpl(Loop& loop, RunConfig config, store::Journal* journal, lease::Manager* leases, Replay replay)
    : loop_(loop), config_(std::move(config)), journal_(journal),
      fence_(std::make_shared<const store::Fence>(config_.id, config_.epoch)), leases_(leases),
      replay_(std::move(replay)), scheduler_(loop) {
  next_seq_ = replay_.last_seq() + 1;
  planned_cancel_ = replay_.cancel();
  edited_ = !config_.edited.empty();
  followed_ = !edited_;
  scheduler_.on_quiet([this] { on_quiet(); });
  connector_ = config_.connector;
  if (!connector_)
    connector_ = make_connector({config_.self_exe, config_.install_identity, home_of(config_.home) + "/cache"});
  calls_ = std::make_unique<Calls>(*this, leases_, connector_);
}

RunImpl::~RunImpl() {
  for (auto& [id, s] : scopes_) s->interrupt = {};
}

std::string RunImpl::home() const {
  std::error_code ignored;
  if (config_.home != in_memory_home) std::filesystem::create_directories(config_.home, ignored);
  return config_.home;
}

void RunImpl::event(const std::string& name, Value data) {
  data.set("event", name);
  if (config_.hooks.event) config_.hooks.event(data);
  if (!journal_) return;
  auto row = std::make_shared<std::pair<std::string, std::string>>(name, data.to_json());
  count_row(name.size() + row->second.size());
  journal_->enqueue([run = config_.id, row, at = now_us()](store::Db& db) {
    return store::append_event(db, run, at, row->first, row->second);
  });
}

Result<> RunImpl::metric(const agent::Metric& m) {
  const std::string line = agent::metric_line(m);
  if (config_.hooks.metric) {
    config_.hooks.metric(line);
    return {};
  }
  if (!config_.keeps_metrics || replaying()) return {};
  if (limits_.disk) RILLE_CHECK(limits_.disk->take(static_cast<std::int64_t>(line.size())));
  if (!metrics_) { RILLE_TRY(metrics_, MetricFile::open(home(), MetricFile::script_name(), MetricSource())); }
  return metrics_->append(line);
}

static Result<> pin(store::Db& db, const std::string& run, const std::string& module, const std::string& source) {
  std::string hash = sha256_hex(source);
  RILLE_CHECK(db.run("INSERT OR IGNORE INTO blobs(sha256,content) VALUES(?,?)", {hash, source}));
  return db.run("INSERT OR IGNORE INTO sources(run,module,sha256) VALUES(?,?,?)", {run, module, hash});
}

// The record was replayed to its end with the edited sources: from now on they are the run's pinned sources.
void RunImpl::pin_edited() {
  followed_ = true;
  auto modules = std::make_shared<std::map<std::string, std::string>>(pinned_);
  Value told;
  told.set("script", config_.edited);
  for (const auto& [module, source] : pinned_)
    if (!module.starts_with(':')) told.set(module, sha256_hex(source));
  event("code", std::move(told));
  journal_->enqueue(
      [run = config_.id, script = config_.edited, modules](store::Db& db) -> Result<> {
        RILLE_CHECK(db.run("DELETE FROM sources WHERE run=?", {run}));
        for (const auto& [module, source] : *modules) RILLE_CHECK(pin(db, run, module, source));
        return db.run("UPDATE runs SET script=? WHERE id=?", {script, run});
      },
      fence());
}

Result<std::string> RunImpl::pinned(const std::string& module, const std::function<Result<std::string>()>& load) {
  if (mode() == Mode::session && !module.starts_with(':')) return load();  // never replayed: a file may be read again
  if (auto it = pinned_.find(module); it != pinned_.end()) return it->second;
  std::string source;
  bool found = false;
  // An entry whose name begins with ':' is not code; an edited script does not change it.
  if (journal_ && (!edited_ || module.starts_with(':'))) {
    RILLE_CHECK(
        journal_->reader().query("SELECT content FROM sources JOIN blobs USING (sha256) WHERE run=? AND module=?",
                                 {config_.id, module}, [&](const store::Row& row) {
                                   source = row.text(0);
                                   found = true;
                                 }));
  }
  if (!found) {
    RILLE_TRY(source, load());
    if (journal_ && config_.mode == Mode::durable && followed_) {
      RILLE_CHECK(count_source(module, source));
      auto row = std::make_shared<std::pair<std::string, std::string>>(module, source);
      journal_->enqueue([run = config_.id, row](store::Db& db) { return pin(db, run, row->first, row->second); },
                        fence());
      // The limits of the run must be on the disk at once, because they also apply after a resume. The folder is
      // written with the run's first entry: before that, nothing depends on it.
      if (module.starts_with(':') && module != working_folder) RILLE_CHECK(journal_->flush());
    }
  }
  pinned_.emplace(module, source);
  return source;
}

// A text that the journal has already is stored once.
Result<> RunImpl::count_source(const std::string& module, const std::string& source) {
  if (!limits_.disk) return {};
  bool stored = false;
  RILLE_CHECK(journal_->reader().query("SELECT 1 FROM blobs WHERE sha256=?", {sha256_hex(source)},
                                       [&](const store::Row&) { stored = true; }));
  return limits_.disk->take_row(static_cast<std::int64_t>(module.size() + (stored ? 0 : source.size())));
}

Async<Value> RunImpl::execute(Guest& guest, FunctionRef main, Value argument) {
  guest_ = &guest;
  FiberRecord& f = new_fiber("main", nullptr);
  FiberId id = f.id;
  if (planned_cancel_ && planned_cancel_->after < 0) begin_cancel();
  if (cancel_reason_) f.root->source->cancel(*cancel_reason_);
  ended_.emplace(scheduler_);
  f.joiners.push_back(*ended_);
  watch_deadline();
  scheduler_.ready([this, id, main, argument = std::move(argument)] { guest_->start(id, main, argument); });
  co_await *ended_;
  deadline_timer_.reset();
  if (suspended_) {
    guest_ = nullptr;
    co_return *paused_;
  }
  Result<Value> result = std::move(fiber(id).result);
  guest_ = nullptr;
  if (divergence_) {
    result = *divergence_;
  } else {
    if (!followed_) pin_edited();
    const bool over_time = cancel_reason_ && cancel_reason_->kind == ErrorKind::timeout;
    if (over_time && (result || result.error().message != cancel_reason_->message)) result = *cancel_reason_;
  }
  co_return co_await settle_run(std::move(result));
}

constexpr std::size_t small_error_bytes = 4096;  // the error of a run is recorded up to this size, whatever the limit

// Ends the run: releases the leases that the journal lists for it, ends its children, and records the result.
Async<Value> RunImpl::settle_run(Result<Value> result) {
  if (!journal_) co_return result;
  std::string text;
  MemoryHeld counted;  // counts the result until it is on the disk
  if (result) {
    Result<std::string> fits = counted_result(*result, counted);
    if (fits) text = std::move(*fits);
    else result = std::move(fits).error();
  }
  std::string error;
  if (!result) error = error_to_value(result.error()).to_json();
  if (limits_.disk && error.size() > small_error_bytes) {
    if (const Result<> fits = limits_.disk->take_row(static_cast<std::int64_t>(error.size())); !fits) {
      result = shortened(result.error()).with_hint("the rest is not kept: " + fits.error().message);
      error = error_to_value(result.error()).to_json();
    }
  }
  std::string state = result                                         ? "done"
                      : divergence_                                  ? "diverged"
                      : result.error().kind == ErrorKind::cancelled  ? "cancelled"
                      : result.error().code == "run_deadline"        ? "cancelled"
                      : cancel_reason_ && of_journal(result.error()) ? "cancelled"
                                                                     : "failed";
  Result<> released;
  // A diverged run keeps its leases until the user decides; a cancel is that decision.
  if (leases_ && (!divergence_ || cancel_reason_)) {
    released = co_await calls_->release_run();
    if (!released) state = "cleanup";
    lease::Manager::Event tell = [this](const std::string& e, Value data) { event(e, std::move(data)); };
    Result<> left;
    if (config_.engine) left = co_await config_.engine->abandon_children(config_.id, false, tell);
    if (!left && released) released = std::move(left), state = "cleanup";
    const Result<> swept = co_await leases_->reaper().sweep(config_.id, std::move(tell));
    if (!swept)
      event("warning", Value().set("what", "the last look for machines").set("message", swept.error().message));
  }
  auto row = std::make_shared<std::array<std::string, 3>>();
  (*row)[0] = state;
  if (result) (*row)[1] = std::move(text);
  else (*row)[2] = std::move(error);
  std::int64_t at = now_us();
  store::Journal::Write write = [run = config_.id, row, at](store::Db& db) -> Result<> {
    const auto& r = *row;
    RILLE_CHECK(db.run("DELETE FROM permits WHERE run=?", {run}));
    return db.run("UPDATE runs SET state=?, result=?, error=?, updated_us=?, ended_us=?, pid=0 WHERE id=?",
                  {r[0], r[1].empty() ? store::SqlValue() : store::SqlValue(std::string_view(r[1])),
                   r[2].empty() ? store::SqlValue() : store::SqlValue(std::string_view(r[2])), at, at, run});
  };
  Result<> written;
  if (config_.mode == Mode::session) journal_->enqueue(std::move(write), fence());  // on disk when the journal closes
  else written = co_await journal_->commit(std::move(write), fence());
  if (!result) co_return result;
  if (!written) co_return written.error();
  if (!released) co_return released.error();
  co_return result;
}

static RunConfig ephemeral_config(std::string name, std::string directory, Value args, RunHooks hooks) {
  RunConfig config;
  config.id = std::move(name);
  config.home = std::move(directory);
  config.mode = Mode::ephemeral;
  config.args = std::move(args);
  config.hooks = std::move(hooks);
  return config;
}

std::unique_ptr<Run> make_ephemeral_run(Loop& loop, std::string name, std::string directory, Value args,
                                        RunHooks hooks) {
  RunConfig config = ephemeral_config(std::move(name), std::move(directory), std::move(args), std::move(hooks));
  return std::make_unique<RunImpl>(loop, std::move(config), nullptr, nullptr, Replay());
}

std::unique_ptr<Run> make_script_run(Loop& loop, std::string name, Value args, RunHooks hooks) {
  RunConfig config = ephemeral_config(std::move(name), ".", std::move(args), std::move(hooks));
  config.apart = true;
  return std::make_unique<RunImpl>(loop, std::move(config), nullptr, nullptr, Replay());
}

}  // namespace rille::engine
