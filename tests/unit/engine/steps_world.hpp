// The world in which steps are crashed exhaustively: a disk in memory, virtual time, effects that are counted. A place
// where the process may die is before and after each transaction of the journal, and before and after each effect.
#pragma once

#include <set>

#include "runtime/workflow/engine/run_impl.hpp"
#include "tests/unit/engine/guest.hpp"

namespace rille::engine::test {

struct StepWorld {
  VirtualTime time;
  std::shared_ptr<store::Db> disk = store::Journal::make_disk().value();
  TempDir dir;
  std::map<std::string, int> begun, effects, probes;  // bodies entered, effects done, probes asked; by the step's key
  std::set<std::string> tokens;
  int places = 0;
  std::set<int> crash_at;  // numbers of places, counted over all processes of the run
  bool crashed = false;
  int processes = 0;
  std::int64_t deadline_us = 0;  // of the run

  bool lives() {
    if (!crashed && crash_at.contains(++places)) crashed = true;
    return !crashed;
  }
  // Never returns when the process dies here.
  Async<> place(Loop& loop) {
    if (lives()) co_return success();
    Future<Result<>> never(loop);
    co_return co_await never;
  }
};

using StepScript = std::function<CppGuest::Body(Run&, CppGuest&, StepWorld&)>;

// One process. Nothing when it died.
inline std::optional<Result<Value>> run_process(StepWorld& world, const StepScript& script) {
  world.crashed = false;
  auto loop = Loop::create_virtual(world.time).value();
  std::int64_t epoch = ++world.processes;
  bool settled = true;  // set-up and tear-down are no places
  auto gate = [&](bool) { return settled || world.lives(); };
  auto journal = store::Journal::in_memory(*loop, world.disk, gate);
  std::string state;
  (void)journal->reader().query("SELECT state FROM runs WHERE id='r'", {},
                                [&](const store::Row& row) { state = row.text(0); });
  (void)run_blocking(*loop, journal->commit([epoch](store::Db& db) {
    if (epoch > 1) return db.run("UPDATE runs SET epoch=?, state='running' WHERE id='r'", {epoch});
    return db.run(
        "INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid) "
        "VALUES('r','test','durable','running',1,'{}',0,0,'h',1)");
  }));
  settled = false;
  RunConfig config;
  config.id = "r";
  config.home = world.dir.path;
  config.epoch = epoch;
  config.number = run_number(journal->reader(), "r").value();
  config.deadline_us = world.deadline_us;
  config.died = state == "running";
  config.blobs = std::make_shared<store::Blobs>(world.dir.path + "/blobs");
  Result<Replay> loaded = Replay::load(journal->reader(), "r", config.blobs.get());
  if (!loaded) return Result<Value>(loaded.error());
  Replay replay = std::move(*loaded);
  auto run = std::make_unique<RunImpl>(*loop, std::move(config), journal.get(), nullptr, std::move(replay));
  CppGuest guest(*run);
  std::optional<Result<Value>> out;
  FunctionRef main = guest.function(script(*run, guest, world));
  loop->spawn([](Run& r, CppGuest& g, FunctionRef f, std::optional<Result<Value>>& o) -> Task<void> {
    o.emplace(co_await r.execute(g, f, Value()));
  }(*run, guest, main, out));
  loop->run_until([&] { return out.has_value() || world.crashed; });
  settled = !world.crashed;
  if (world.crashed) out.reset();
  journal.reset();
  loop->abandon_tasks();
  run.reset();
  return out;
}

// To the end, with as many processes as it takes; a person resumes what is paused.
inline Result<Value> run_to_end(StepWorld& world, const StepScript& script) {
  for (int i = 0; i < 20; ++i) {
    std::optional<Result<Value>> out = run_process(world, script);
    if (out && (out->ok() || out->error().code != "run_paused")) return std::move(*out);
  }
  return make_error(ErrorKind::internal, "never settled");
}

// Each way to die at most twice: after each single crash, the places of the resumed processes are crashed in turn.
inline int crash_twice_everywhere(const StepScript& script,
                                  const std::function<void(StepWorld&, const Result<Value>&)>& check) {
  auto run_with = [&](std::set<int> crash_at) {
    StepWorld world;
    world.crash_at = std::move(crash_at);
    Result<Value> r = run_to_end(world, script);
    check(world, r);
    return world.places;
  };
  int schedules = 1, calm = run_with({});
  for (int first = 1; first <= calm; ++first) {
    int places = run_with({first});
    ++schedules;
    for (int second = first + 1; second <= places; ++second, ++schedules) run_with({first, second});
  }
  return schedules;
}

// A body: an effect, with a place before and after it.
struct StepCall {
  std::string name;
  StepOptions options;
  std::function<Async<Value>(FiberId, const StepTicket&, int attempt)> body;  // after the effect; null: gives "ok"
  bool probe_knows = true;                                                    // whether the probe sees the effect
};

inline Async<Value> run_step(Run& run, StepWorld& world, FiberId f, StepCall call) {
  Operation op("step", call.name, Value(), "test:" + call.name);
  RILLE_CO_TRY(StepTicket ticket, co_await run.step_begin(f, std::move(op), call.options));
  if (ticket.recorded) co_return std::move(*ticket.recorded);
  world.tokens.insert(step_token("r", ticket.key));
  StepOutcome out;
  out.again = true;
  out.attempt = ticket.attempt;
  if (ticket.probe) {
    ++world.probes[ticket.key];
    RILLE_CO_CHECK(co_await world.place(run.loop()));
    Result<ProbeAnswer> answer = ProbeAnswer();
    if (call.probe_knows && world.effects[ticket.key]) answer->done = Value("ok");
    RILLE_CO_TRY(out, co_await run.step_probed(f, ticket, std::move(answer)));
  }
  while (out.again) {
    ++world.begun[ticket.key];
    RILLE_CO_CHECK(co_await world.place(run.loop()));
    ++world.effects[ticket.key];
    RILLE_CO_CHECK(co_await world.place(run.loop()));
    Result<Value> value = Value("ok");
    if (call.body) value = co_await call.body(f, ticket, out.attempt);
    RILLE_CO_TRY(out, co_await run.step_end(f, ticket, std::move(value)));
  }
  co_return std::move(out.result);
}

}  // namespace rille::engine::test
