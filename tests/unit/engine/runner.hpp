// One process of the runner after the other, with real agents of the local provider.
#pragma once

#include <catch2/catch.hpp>

#include "runtime/core/loop/process_tree.hpp"
#include "runtime/workflow/provider/local/local.hpp"
#include "tests/unit/engine/world.hpp"

namespace rille::engine::test {

// One process of the runner after the other; the instances go on between them.
struct Runner {
  TempDir dir;
  std::vector<Value> events;
  std::string printed;
  int epoch = 0;
  RetryPolicy restarts = call_restarts();
  std::string self_exe = AGENT_HELPER;
  RunLimits limits;

  struct Live {
    std::unique_ptr<Loop> loop;
    std::unique_ptr<store::Journal> journal;
    provider::Registry registry;
    std::unique_ptr<lease::Manager> leases;
    std::unique_ptr<RunImpl> run;
    std::unique_ptr<CppGuest> guest;
    std::optional<Result<Value>> out;
    ~Live() {  // as a killed process leaves it
      journal.reset();
      loop->abandon_tasks();
      run.reset();
    }
  };

  Runner() { setenv("XDG_CONFIG_HOME", (dir.path + "/config").c_str(), 1); }

  std::unique_ptr<Live> begin(const std::function<CppGuest::Body(Live&)>& script) {
    auto live = std::make_unique<Live>();
    live->loop = Loop::create().value();
    live->journal = store::Journal::open(*live->loop, dir.path + "/journal.db").value();
    provider::LocalOptions local{dir.path, 0, 2000};
    (void)live->registry.add(provider::make_local_provider(*live->loop, local));
    live->leases = std::make_unique<lease::Manager>(*live->loop, *live->journal, live->registry, "test");
    std::int64_t now = ++epoch;
    (void)run_blocking(*live->loop, live->journal->commit([now, at = live->loop->clock().wall_us()](store::Db& db) {
      if (now > 1) return db.run("UPDATE runs SET epoch=? WHERE id='r'", {now});
      return db.run(
          "INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid) "
          "VALUES('r','test','durable','running',1,'{}',?1,?1,'h',1)",
          {at});
    }));
    RunConfig config;
    config.id = "r";
    config.home = dir.path + "/runs/r";
    config.epoch = now;
    config.self_exe = self_exe;
    config.restarts = restarts;
    config.number = run_number(live->journal->reader(), "r").value();
    config.hooks.event = [this](const Value& e) { events.push_back(e); };
    config.hooks.print = [this](std::string_view text) { printed += text; };
    auto replay = Replay::load(live->journal->reader(), "r").value();
    live->run = std::make_unique<RunImpl>(*live->loop, std::move(config), live->journal.get(), live->leases.get(),
                                          std::move(replay));
    live->run->limit(limits);
    live->guest = std::make_unique<CppGuest>(*live->run);
    FunctionRef main = live->guest->function(script(*live));
    live->loop->spawn([](Live& l, FunctionRef f) -> Task<void> {
      l.out.emplace(co_await l.run->execute(*l.guest, f, Value()));
    }(*live, main));
    return live;
  }
  Result<Value> run(const std::function<CppGuest::Body(Live&)>& script) {
    auto live = begin(script);
    live->loop->run_until([&] { return live->out.has_value(); });
    return std::move(*live->out);
  }

  int count(const std::string& event) const {
    int n = 0;
    for (const Value& e : events) n += e.text("event") == event;
    return n;
  }
  std::string instance() const {
    for (const auto& entry : std::filesystem::directory_iterator(dir.path + "/instances"))
      if (!entry.path().filename().string().starts_with('.')) return entry.path();  // else the agents' cache
    return {};
  }
  std::size_t calls_kept() const {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(instance() + "/calls")) ++n;
    return n;
  }
  ~Runner() {
    std::error_code ec;
    for (const auto& entry : std::filesystem::directory_iterator(dir.path + "/instances", ec))
      kill_processes({{}, "RILLE_INSTANCE=" + entry.path().string(), true}, 10'000).ok();
  }
};
inline CallSpec spec(const std::string& name, const std::string& payload) {
  CallSpec s;
  s.name = name;
  s.payload = Value::from_json(payload).value();
  return s;
}

// Ends when the condition holds; only a failure takes the whole time.
inline void until(Runner::Live& live, const std::function<bool()>& met) {
  auto poll = [](Loop& l, const std::function<bool()>& c) -> Task<bool> {
    for (int i = 0; i < 4'000; ++i) {
      if (c()) co_return true;
      (co_await sleep_for(l, 5)).ok();
    }
    co_return false;
  };
  REQUIRE(run_blocking(*live.loop, poll(*live.loop, met)));
}

}  // namespace rille::engine::test
