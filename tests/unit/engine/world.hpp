// The world in which the engine's tests run: effects that are counted, a provider whose machines are a set in
// memory, and a crash at the n-th place where a real process could be killed. A crash abandons the run and
// everything on the loop;
// what was committed stays. The next process opens the same journal.
#pragma once

#include <set>

#include "runtime/workflow/engine/run_impl.hpp"
#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/provider/volumes.hpp"
#include "tests/unit/engine/guest.hpp"

namespace rille::engine::test {

struct World {
  TempDir dir;
  std::map<std::string, int> effects;           // how often each side effect happened
  std::map<std::string, std::string> machines;  // alive, by id -> tag
  std::map<std::string, int> creates;           // create calls that made a machine, by token
  int places = 0, crash_at = -1, cancel_at = -1;
  Run* run = nullptr;                                        // of the process that is alive
  int create_calls = 0, lose_answer = -1, refuse_from = -1;  // by number of the create call, from 1
  int fail_lists = 0, fail_terminates = 0;                   // so many of these calls fail
  bool crashed = false;

  // A place where the process may die. Never returns when it does.
  Async<> place(Loop& loop) {
    if (++places == cancel_at) run->cancel(make_error(ErrorKind::cancelled, "a person said so"));
    if (places == crash_at) {
      crashed = true;
      Future<Result<>> never(loop);
      co_return co_await never;
    }
    co_return success();
  }
};

class MemoryProvider final : public provider::Provider, public provider::VolumeSeller {
 public:
  MemoryProvider(Loop& loop, World& world) : loop_(loop), world_(world) {
    traits_.token_lifetime_ms = 24 * 3'600'000;
    traits_.create_timeout_ms = 0;
    traits_.dead_man = provider::DeadMan::provider;
  }
  const std::string& name() const override { return name_; }
  const provider::Traits& traits() const override { return traits_; }
  Async<std::vector<provider::Offer>> offers(provider::OfferQuery, CancelToken) override {
    provider::Offer o;
    o.provider = "memory";
    o.id = "small";
    o.price_micros_per_hour = 1'000'000;
    std::vector<provider::Offer> out(1, o);
    co_return out;
  }
  const std::vector<provider::VolumeKind>& volume_kinds() const override {
    static const std::vector<provider::VolumeKind> all{{"disk"}};
    return all;
  }
  Async<std::vector<provider::Offer>> volume_offers(provider::VolumeWish wish, CancelToken) override {
    std::vector<provider::Offer> out(1, provider::volume_offer(name_, wish.kind, "", 1'000));
    co_return out;
  }
  Async<provider::Machine> create(provider::CreateRequest request, CancelToken) override {
    RILLE_CO_CHECK(co_await world_.place(loop_));
    int call = ++world_.create_calls;
    if (world_.refuse_from > 0 && call >= world_.refuse_from) co_return make_error(ErrorKind::capacity, "none left");
    std::string id = "m-" + request.token;
    if (world_.machines.emplace(id, request.tag).second) ++world_.creates[request.token];
    RILLE_CO_CHECK(co_await world_.place(loop_));
    if (call == world_.lose_answer) co_return make_error(ErrorKind::network, "connection reset").with_retry();
    co_return machine(id);
  }
  Async<provider::Machine> describe(std::string id, CancelToken) override { co_return machine(id); }
  Async<std::vector<provider::Machine>> list(std::string tag, CancelToken) override {
    if (world_.fail_lists > 0 && world_.fail_lists--) co_return make_error(ErrorKind::network, "no list");
    std::vector<provider::Machine> out;
    for (const auto& [id, t] : world_.machines)
      if (t.starts_with(tag)) out.push_back(machine(id));
    co_return out;
  }
  Async<> terminate(std::string id, CancelToken) override {
    RILLE_CO_CHECK(co_await world_.place(loop_));
    if (world_.fail_terminates > 0 && world_.fail_terminates--) co_return make_error(ErrorKind::network, "no route");
    world_.machines.erase(id);
    RILLE_CO_CHECK(co_await world_.place(loop_));
    co_return success();
  }

 private:
  provider::Machine machine(const std::string& id) const {
    provider::Machine m;
    m.id = id;
    auto it = world_.machines.find(id);
    m.state = it == world_.machines.end() ? provider::MachineState::gone : provider::MachineState::live;
    if (it != world_.machines.end()) m.tag = it->second;
    return m;
  }
  Loop& loop_;
  World& world_;
  std::string name_ = "memory";
  provider::Traits traits_;
};

// One process: opens the journal, starts or resumes the run, and drives it until it ends or crashes.
class Process {
 public:
  using Script = std::function<CppGuest::Body(Run&, CppGuest&, World&)>;

  // The result, or nothing when the process crashed.
  static std::optional<Result<Value>> run(World& world, const Script& script) {
    auto loop = Loop::create().value();
    auto journal = store::Journal::open(*loop, world.dir.path + "/journal.db").value();
    provider::Registry registry;
    (void)registry.add(std::make_unique<MemoryProvider>(*loop, world));
    lease::Hooks hooks;
    hooks.pause = [l = loop.get()](std::int64_t, CancelToken token) { return sleep_for(*l, 0, token); };
    lease::Manager leases(*loop, *journal, registry, "test", hooks);
    std::int64_t epoch = 0;
    (void)journal->reader().query("SELECT epoch FROM runs WHERE id='r'", {},
                                  [&](const store::Row& row) { epoch = row.integer(0); });
    epoch += 1;
    (void)run_blocking(*loop, journal->commit([epoch](store::Db& db) {
      if (epoch > 1) return db.run("UPDATE runs SET epoch=? WHERE id='r'", {epoch});
      return db.run(
          "INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid) "
          "VALUES('r','test','durable','running',1,'{}',0,0,'h',1)");
    }));
    RunConfig config;
    config.id = "r";
    config.home = world.dir.path;
    config.epoch = epoch;
    config.number = run_number(journal->reader(), "r").value();
    auto replay = Replay::load(journal->reader(), "r").value();
    auto run = std::make_unique<RunImpl>(*loop, std::move(config), journal.get(), &leases, std::move(replay));
    world.run = run.get();
    CppGuest guest(*run);
    std::optional<Result<Value>> out;
    FunctionRef main = guest.function(script(*run, guest, world));
    loop->spawn([](Run& r, CppGuest& g, FunctionRef f, std::optional<Result<Value>>& o) -> Task<void> {
      o.emplace(co_await r.execute(g, f, Value()));
    }(*run, guest, main, out));
    loop->run_until([&] { return out.has_value() || world.crashed; });
    world.crashed = false;
    abandon(loop, journal, run);
    return out;
  }

  // Runs the script to its end with one crash at `crash_at`, resuming as often as needed.
  static Result<Value> settle(World& world, const Script& script, int crash_at) {
    world.places = 0;
    world.crash_at = crash_at;
    for (int i = 0; i < 5; ++i) {
      if (auto out = run(world, script)) return std::move(*out);
      world.crash_at = -1;
    }
    return make_error(ErrorKind::internal, "never settled");
  }

 private:
  // The order of a killed process: nothing runs any more; the journal's file keeps what was written.
  static void abandon(std::unique_ptr<Loop>& loop, std::unique_ptr<store::Journal>& journal,
                      std::unique_ptr<RunImpl>& run) {
    journal.reset();
    loop->abandon_tasks();
    run.reset();
    loop.reset();
  }
};

}  // namespace rille::engine::test
