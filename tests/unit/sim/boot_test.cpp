// Machines that take long to start, that never start, and that never become reachable, on the simulated cloud.
#include <catch2/catch.hpp>

#include "runtime/workflow/engine/engine.hpp"
#include "runtime/workflow/engine/simulation.hpp"
#include "tests/unit/engine/guest.hpp"

using namespace rille;
using namespace rille::engine;
using test::CppGuest;

namespace {

constexpr std::int64_t minute_us = 60'000'000;

struct BootWorld {
  test::TempDir folder;
  VirtualTime time;
  std::unique_ptr<Simulation> sim;
  std::vector<Value> events;

  explicit BootWorld(std::int64_t provisioning_ms) {
    auto options = provider::sim::Options::calm(3);
    options.provisioning_ms = provisioning_ms;
    sim = Simulation::create(time, options, folder.path).value();
  }

  // One call on a machine, to its end. The test counts the machines that it took.
  Result<Value> call(const char* on_loss) {
    auto loop = Loop::create_virtual(time).value();
    auto engine = Engine::open_simulated(*loop, *sim).value();
    RunHooks hooks;
    hooks.event = [this](const Value& e) { events.push_back(e); };
    std::unique_ptr<Run> run;
    std::unique_ptr<CppGuest> guest;
    CppGuest::Body body = [&](FiberId f) -> Async<Value> {
      Value options = Value().set("gpu", "H100:8").set("on_loss", on_loss).set("ttl", "12h");
      RILLE_CO_TRY(LeaseView box, co_await run->rent(f, "box", options, "t"));
      CallSpec spec;
      spec.name = spec.identity = "work";
      spec.sim.set("duration", 60.0).set("result", "done");
      co_return co_await run->call(f, box.id, spec, "t");
    };
    auto whole = [&]() -> Async<Value> {
      RunSpec spec;
      spec.script = "boot";
      spec.id = "r";
      RILLE_CO_TRY(run, co_await engine->start(std::move(spec), hooks));
      guest = std::make_unique<CppGuest>(*run);
      FunctionRef main = guest->function(body);
      Value none;
      co_return co_await run->execute(*guest, main, none);
    };
    Result<Value> out = run_blocking(*loop, whole());
    guest.reset();
    return out;
  }
  std::vector<Value> told(const char* event) const {
    std::vector<Value> out;
    for (const Value& e : events)
      if (e.text("event") == event) out.push_back(e);
    return out;
  }
  const provider::sim::Box& box(std::size_t n) const { return sim->cloud.boxes().at(n); }
};

}  // namespace

TEST_CASE("a machine that takes ten minutes to start is waited for, and its user hears of it") {
  BootWorld w(600'000);
  const Result<Value> result = w.call("fail");
  REQUIRE(w.box(0).live_us - w.box(0).landed_us > 5 * minute_us);
  INFO((result ? "" : result.error().message));
  REQUIRE(result.ok());
  CHECK(*result == Value("done"));
  CHECK(w.sim->cloud.boxes().size() == 1);
  const std::vector<Value> told = w.told("starting");
  REQUIRE(told.size() >= 5);
  CHECK(told.front().text("name") == "box");
  CHECK(told.front().text("state") == "pending");
  CHECK(told.back().integer("waited_ms") >= told.front().integer("waited_ms") + 4 * 30'000);
}

TEST_CASE("a machine that does not start is given up in the end, with how long that was and what the provider says") {
  BootWorld w(24 * 3'600'000);
  const Result<Value> result = w.call("fail");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == "agent_unreachable");
  CHECK(result.error().kind == ErrorKind::timeout);
  CHECK(result.error().message.find("has not started in 20m") != std::string::npos);
  CHECK(result.error().message.find("says pending") != std::string::npos);
  REQUIRE(w.sim->cloud.boxes().size() == 1);
  CHECK(w.box(0).terminated_us - w.box(0).asked_us >= 20 * minute_us);
  CHECK(w.box(0).terminated_us - w.box(0).asked_us < 22 * minute_us);
  CHECK(w.told("released").size() == 1);
}

TEST_CASE("a machine that never answers after its start has five minutes, not twenty tries") {
  BootWorld w(90'000);
  w.sim->agents.never_answer();
  const Result<Value> result = w.call("fail");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == "agent_unreachable");
  CHECK(result.error().message.find("has never answered for 5m") != std::string::npos);
  CHECK(result.error().message.find("does not answer any more") != std::string::npos);
  REQUIRE(w.sim->cloud.boxes().size() == 1);
  CHECK(w.box(0).terminated_us - w.box(0).live_us >= 5 * minute_us - 15'000'000);
  CHECK(w.told("starting").back().text("state") == "live");
}

TEST_CASE("machines that can never be used are replaced twice, not until the ttl is over") {
  BootWorld w(90'000);
  w.sim->agents.never_answer();
  const Result<Value> result = w.call("replace");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().kind == ErrorKind::state);
  CHECK(result.error().message.find("none of 3 machines in a row could be used") != std::string::npos);
  CHECK(result.error().message.find("does not answer any more") != std::string::npos);
  CHECK(w.sim->cloud.boxes().size() == 3);
  CHECK(w.sim->cloud.alive() == 0);
  CHECK(w.told("replace").size() == 2);
}

TEST_CASE("machines that never start are replaced twice, too") {
  BootWorld w(24 * 3'600'000);
  const Result<Value> result = w.call("replace");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message.find("has not started in 20m") != std::string::npos);
  CHECK(w.sim->cloud.boxes().size() == 3);
  CHECK(w.sim->cloud.alive() == 0);
}
