// The engine's reaction to a notice, on the simulated cloud: which calls leave, which stay, and what becomes of the
// work.
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/workflow/engine/engine.hpp"
#include "runtime/workflow/engine/simulation.hpp"
#include "tests/unit/engine/guest.hpp"

using namespace rille;
using namespace rille::engine;
using test::CppGuest;

namespace {

constexpr std::int64_t one_minute_us = 60'000'000;

// A world in which the first machine of the run is taken away with notice while it works.
struct NoticeWorld {
  test::TempDir folder;
  VirtualTime time;
  std::unique_ptr<Simulation> sim;
  std::vector<Value> events;

  std::unique_ptr<CppGuest> guest;  // of the process

  explicit NoticeWorld(std::uint64_t seed, bool wrong = false) {
    auto options = provider::sim::Options::calm(seed);
    options.preemptions = 5;
    options.without_notice = 0;
    options.faults.wrong_notice = wrong ? 1 : 0;
    sim = Simulation::create(time, options, folder.path).value();
  }

  using Script = std::function<Async<Value>(Run&, FiberId)>;
  // One process, from the start or the record to the end of the run.
  Result<Value> run(Script script) {
    auto loop = Loop::create_virtual(time).value();
    auto engine = Engine::open_simulated(*loop, *sim).value();
    RunHooks hooks;
    hooks.event = [this](const Value& e) { events.push_back(e); };
    std::unique_ptr<Run> run;
    auto whole = [&]() -> Async<Value> {
      RunSpec spec;
      spec.script = "notice";
      spec.id = "r";
      Result<std::unique_ptr<Run>> made = make_error(ErrorKind::internal, "");
      if (engine->run("r")) made = co_await engine->resume("r", hooks);
      else made = co_await engine->start(std::move(spec), hooks);
      if (!made) co_return made.error();
      run = std::move(*made);
      guest = std::make_unique<CppGuest>(*run);
      CppGuest::Body body = [&](FiberId f) { return script(*run, f); };
      FunctionRef main = guest->function(std::move(body));
      Value none;
      co_return co_await run->execute(*guest, main, none);
    };
    Result<Value> out = run_blocking(*loop, whole());
    guest.reset();
    return out;
  }
  int count(const char* event) const {
    return static_cast<int>(
        std::count_if(events.begin(), events.end(), [&](const Value& e) { return e.text("event") == event; }));
  }
  Value first(const char* event) const {
    auto it = std::find_if(events.begin(), events.end(), [&](const Value& e) { return e.text("event") == event; });
    return it == events.end() ? Value() : *it;
  }
};

CallSpec train(std::int64_t minutes, bool keep = true) {
  CallSpec spec;
  spec.name = spec.identity = "train";
  spec.keep_checkpoints = keep;
  spec.sim.set("duration", static_cast<double>(minutes * 60)).set("result", "trained").set("checkpoint_every", "1h");
  return spec;
}

Value spot(const char* on_loss) { return Value().set("gpu", "H100:8").set("spot", true).set("on_loss", on_loss); }

NoticeWorld::Script one_call(const char* on_loss, CallSpec spec) {
  return [=](Run& run, FiberId f) -> Async<Value> {
    RILLE_CO_TRY(LeaseView box, co_await run.rent(f, "box", spot(on_loss), "t"));
    co_return co_await run.call(f, box.id, spec, "t");
  };
}

// Seeds whose first machine lives for a while before its notice.
std::vector<std::uint64_t> worlds(int wanted) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t seed = 1; static_cast<int>(out.size()) < wanted; ++seed) {
    NoticeWorld w(seed);
    (void)w.run(one_call("fail", train(1)));
    const auto& box = w.sim->cloud.boxes().at(0);
    if (box.notice_us > box.live_us + 5 * one_minute_us && box.lost_us < box.live_us + 600 * one_minute_us)
      out.push_back(seed);
  }
  return out;
}

}  // namespace

TEST_CASE("a call leaves on notice: the old machine ends before it is lost, and no work is done twice") {
  bool told[2] = {false, false};
  for (std::uint64_t seed : worlds(6)) {
    NoticeWorld w(seed);
    auto result = w.run(one_call("replace", train(600)));
    REQUIRE(result.ok());
    CHECK(*result == Value("trained"));
    const auto& first = w.sim->cloud.boxes().at(0);
    told[first.told_there] = true;
    CHECK(first.terminated_us >= first.notice_us);
    CHECK(first.terminated_us < first.lost_us);
    CHECK(w.count("call_left") >= 1);
    // A machine whose notice comes before anything runs there, or with it, is lost all the same.
    CHECK(w.count("call_left") + w.sim->cloud.preempted() == w.count("call_moved"));
    if (!w.sim->cloud.preempted())
      CHECK(w.sim->agents.lost_work_ms() < 1'000 * w.count("call_left"));  // a checkpoint counts whole seconds
    CHECK(w.count("preempting") >= w.count("call_left"));
    CHECK(w.first("call_left").boolean("kept"));
    // The offer that was taken away is not the next one.
    CHECK(w.sim->cloud.boxes().at(1).place.region != first.place.region);
  }
  CHECK(told[0]);  // by the provider alone
  CHECK(told[1]);
}

TEST_CASE("on_loss = \"fail\": a checkpoint is written and kept, and the call runs on until its machine is lost") {
  NoticeWorld w(worlds(1).at(0));
  auto result = w.run(one_call("fail", train(600)));
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == "machine_lost");
  CHECK(w.count("preempting") == 1);
  CHECK(w.count("call_left") == 0);
  REQUIRE(w.count("checkpoint_kept") >= 1);
  const auto& box = w.sim->cloud.boxes().at(0);
  std::int64_t step = 0;
  for (const Value& e : w.events)
    if (e.text("event") == "checkpoint_kept") step = e.integer("step");
  CHECK(step * 1'000'000 >
        box.notice_us - box.live_us - 2 * one_minute_us);  // made at the notice, not at the last hour
  CHECK(w.sim->cloud.preempted() == 1);
}

TEST_CASE("a call without checkpoints at the runner keeps running, and so do all others on its machine") {
  NoticeWorld w(worlds(1).at(0));
  auto script = [](Run& run, FiberId f) -> Async<Value> {
    RILLE_CO_TRY(LeaseView box, co_await run.rent(f, "box", spot("replace"), "t"));
    CppGuest::Body none;
    co_return co_await run.call(f, box.id, train(600, false), "t");
  };
  REQUIRE(w.run(script).ok());
  CHECK(w.count("preempting") >= 1);
  CHECK(w.count("call_left") == 0);
  CHECK(w.sim->cloud.preempted() == w.count("call_moved"));
}

TEST_CASE("a call that will be done before the machine goes is left alone, and its result counts") {
  for (std::uint64_t seed : worlds(3)) {
    NoticeWorld look(seed);
    REQUIRE(look.run(one_call("fail", train(1))).ok());
    const auto& box = look.sim->cloud.boxes().at(0);
    // The same machine in a world where the work ends a minute before it is lost.
    std::int64_t minutes = (box.lost_us - box.live_us) / one_minute_us - 1;
    NoticeWorld w(seed);
    REQUIRE(w.run(one_call("replace", train(minutes))).ok());
    CHECK(w.count("call_left") == 0);
    CHECK(w.sim->cloud.boxes().size() == 1);
    CHECK(w.sim->agents.lost_work_ms() == 0);
  }
}

TEST_CASE("two calls leave together: one move, and each goes on from a checkpoint of its own") {
  NoticeWorld w(worlds(1).at(0));
  auto script = [&](Run& run, FiberId f) -> Async<Value> {
    RILLE_CO_TRY(LeaseView box, co_await run.rent(f, "box", spot("replace"), "t"));
    auto one = [&run, box](std::string name) -> CppGuest::Body {
      return [&run, box, name](FiberId g) -> Async<Value> {
        CallSpec spec = train(600);
        spec.name = spec.identity = name;
        co_return co_await run.call(g, box.id, std::move(spec), "t");
      };
    };
    RILLE_CO_TRY(FiberId a, run.spawn(f, "a", w.guest->function(one("left/one")), Value()));
    RILLE_CO_TRY(FiberId b, run.spawn(f, "b", w.guest->function(one("left one")), Value()));
    RILLE_CO_CHECK(co_await run.join(f, a));
    RILLE_CO_CHECK(co_await run.join(f, b));
    co_return Value();
  };
  REQUIRE(w.run(script).ok());
  CHECK(w.count("call_left") >= 4);
  CHECK(w.count("call_left") <= 2 * w.count("replacing"));
  CHECK(w.count("checkpoint_restored") == w.count("call_moved"));
  REQUIRE(w.sim->cloud.preempted() == 0);
  CHECK(w.sim->agents.lost_work_ms() < 1'000 * w.count("call_left"));
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(w.folder.path + "/runs/r/checkpoints")) {
    ++folders;
    CHECK(entry.path().filename().string().starts_with("left_one-"));
  }
  CHECK(folders == 2);
}

TEST_CASE("a wrong notice: the call that left continues on the same machine, because another call runs there") {
  NoticeWorld w(worlds(1).at(0), true);
  const auto& boxes = w.sim->cloud.boxes();
  auto script = [&](Run& run, FiberId f) -> Async<Value> {
    RILLE_CO_TRY(LeaseView box, co_await run.rent(f, "box", spot("replace"), "t"));
    CppGuest::Body deaf = [&, box](FiberId g) -> Async<Value> {  // could leave, but does not ask
      CallSpec spec = train(700);
      spec.name = spec.identity = "other";
      spec.sim.as_object()->erase("checkpoint_every");
      co_return co_await run.call(g, box.id, std::move(spec), "t");
    };
    RILLE_CO_TRY(FiberId other, run.spawn(f, "other", w.guest->function(std::move(deaf)), Value()));
    RILLE_CO_TRY(Value done, co_await run.call(f, box.id, train(600), "t"));
    RILLE_CO_CHECK(co_await run.join(f, other));
    co_return done;
  };
  auto result = w.run(script);
  REQUIRE(result.ok());
  CHECK(*result == Value("trained"));
  CHECK(w.count("call_left") == 1);
  CHECK(w.count("replacing") == 0);
  CHECK(boxes.size() == 1);
  CHECK(w.sim->agents.lost_work_ms() < 1'000);
}

TEST_CASE("box:preempting is nil, then the deadline, and a resumed run sees what was recorded") {
  NoticeWorld w(worlds(1).at(0));
  std::vector<Value> seen;
  bool stop = true;
  auto script = [&](Run& run, FiberId f) -> Async<Value> {
    RILLE_CO_TRY(LeaseView box, co_await run.rent(f, "box", spot("fail"), "t"));
    RILLE_CO_TRY(Value before, co_await run.preempting(f, box.id, "t"));
    const auto& machine = w.sim->cloud.boxes().at(0);
    std::int64_t until_ms = (machine.notice_us - w.sim->cloud.now_us()) / 1000 + 1000;
    if (!run.replaying()) seen.push_back(Value(static_cast<double>(machine.lost_us)));
    RILLE_CO_CHECK(co_await run.sleep(f, "until the notice", std::max<std::int64_t>(until_ms, 0), "t"));
    RILLE_CO_TRY(Value after, co_await run.preempting(f, box.id, "t"));
    seen.push_back(before);
    seen.push_back(after);
    if (stop) co_return make_error(ErrorKind::state, "once more");
    co_return after;
  };
  (void)w.run(script);
  REQUIRE(seen.size() == 3);
  CHECK(seen[1].is_null());
  CHECK(*seen[2].as_number() == Approx(*seen[0].as_number() / 1e6).epsilon(1e-9));
  CHECK(w.count("preempting") == 1);
}
