// What a crash, or two, at any place leaves of a step's promise.
#include <catch2/catch.hpp>

#include "tests/unit/engine/steps_world.hpp"

using namespace rille;
using namespace rille::engine;
using namespace rille::engine::test;

namespace {

StepCall call(std::string name, Effect effect, bool probes = false) {
  StepCall c;
  c.name = std::move(name);
  c.options.effect = effect;
  c.options.probes = probes;
  return c;
}

// Three steps in a row, the one in question in the middle.
StepScript around(StepCall middle) {
  return [middle](Run& run, CppGuest&, StepWorld& world) -> CppGuest::Body {
    return [&run, &world, middle](FiberId f) -> Async<Value> {
      StepCall before = call("before", Effect::pure), after = call("after", Effect::idempotent);
      RILLE_CO_CHECK(co_await run_step(run, world, f, before));
      RILLE_CO_TRY(Value v, co_await run_step(run, world, f, middle));
      RILLE_CO_CHECK(co_await run_step(run, world, f, after));
      co_return v;
    };
  };
}

}  // namespace

TEST_CASE("a step of effect once never runs twice, whatever two crashes do") {
  int uncertain = 0, done = 0;
  int schedules = crash_twice_everywhere(around(call("pay", Effect::once)), [&](StepWorld& w, const Result<Value>& r) {
    CHECK(w.begun["main/pay#1"] <= 1);
    CHECK(w.effects["main/pay#1"] <= 1);
    if (r) {
      ++done;
      CHECK(w.effects["main/pay#1"] == 1);
      return;
    }
    ++uncertain;
    CHECK(r.error().kind == ErrorKind::state);
    CHECK(r.error().code == "step_uncertain");
    CHECK(r.error().resource == step_token("r", "main/pay#1"));
    CHECK_THAT(r.error().message, Catch::Contains("step 'pay' began at 20"));
  });
  CHECK(schedules > 100);
  CHECK(uncertain > 10);
  CHECK(done > 10);
}

TEST_CASE("with a probe a step of effect once has its effect exactly once, whatever two crashes do") {
  int asked = 0;
  auto check = [&](StepWorld& w, const Result<Value>& r) {
    REQUIRE(r.ok());
    CHECK(r->to_json() == "\"ok\"");
    CHECK(w.effects["main/pay#1"] == 1);
    asked += w.probes["main/pay#1"];
  };
  crash_twice_everywhere(around(call("pay", Effect::once, true)), check);
  CHECK(asked > 10);
}

TEST_CASE("an uncertain step that is caught stays uncertain, and the script goes on") {
  StepScript script = [](Run& run, CppGuest&, StepWorld& world) -> CppGuest::Body {
    return [&run, &world](FiberId f) -> Async<Value> {
      StepCall pay = call("pay", Effect::once), other = call("other", Effect::idempotent);
      Result<Value> paid = co_await run_step(run, world, f, pay);
      if (!paid && paid.error().code != "step_uncertain") co_return paid;
      RILLE_CO_CHECK(co_await run_step(run, world, f, other));
      co_return Value(paid.ok());
    };
  };
  crash_twice_everywhere(script, [](StepWorld& w, const Result<Value>& r) {
    REQUIRE(r.ok());
    CHECK(w.begun["main/pay#1"] <= 1);
    if (*r->as_bool()) CHECK(w.effects["main/pay#1"] == 1);
  });
}

TEST_CASE("a finished step never runs again, whatever two crashes do, and its token stays") {
  for (Effect effect : {Effect::idempotent, Effect::pure}) {
    crash_twice_everywhere(around(call("work", effect)), [](StepWorld& w, const Result<Value>& r) {
      REQUIRE(r.ok());
      int repeats = 0;
      for (const auto& [key, n] : w.begun) repeats += n - 1;
      CHECK(repeats < w.processes);  // each crash cuts off one body at most
      CHECK(w.tokens.size() == 3);
    });
  }
}

TEST_CASE("a pure step writes nothing before its result") {
  for (Effect effect : {Effect::pure, Effect::idempotent, Effect::once}) {
    StepWorld world;
    int rows = -1;
    StepScript script = [&](Run& run, CppGuest&, StepWorld& w) -> CppGuest::Body {
      return [&, effect](FiberId f) -> Async<Value> {
        StepCall slow = call("slow", effect);
        Operation op("step", "slow", Value(), "test");
        RILLE_CO_TRY(StepTicket ticket, co_await run.step_begin(f, std::move(op), slow.options));
        if (effect != Effect::once) RILLE_CO_CHECK(co_await sleep_for(run.loop(), 1000));
        RILLE_CO_CHECK(w.disk->query("SELECT count(*) FROM begun", {},
                                     [&](const store::Row& row) { rows = static_cast<int>(row.integer(0)); }));
        RILLE_CO_TRY(StepOutcome out, co_await run.step_end(f, ticket, Value()));
        co_return std::move(out.result);
      };
    };
    REQUIRE(run_to_end(world, script).ok());
    CHECK(rows == (effect == Effect::pure ? 0 : 1));
  }
}

TEST_CASE("the last heartbeat reaches the next attempt, and the next process") {
  StepWorld world;
  std::vector<std::string> seen;
  StepScript script = [&](Run& run, CppGuest&, StepWorld& w) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      StepOptions options;
      options.retry.any_error = true;
      Operation op("step", "train", Value(), "test");
      RILLE_CO_TRY(StepTicket ticket, co_await run.step_begin(f, std::move(op), options));
      seen.push_back(ticket.last.to_json());
      Value big(std::string(70'000, 'x'));
      CHECK(run.step_heartbeat(f, ticket, std::move(big)).error().kind == ErrorKind::invalid);
      for (int i = 1; i <= 25; ++i) {
        RILLE_CO_CHECK(run.step_heartbeat(f, ticket, Value(i)));
        RILLE_CO_CHECK(co_await sleep_for(run.loop(), 100));
      }
      if (w.processes == 1) RILLE_CO_CHECK(co_await w.place(run.loop()));  // it dies here
      RILLE_CO_TRY(StepOutcome out, co_await run.step_end(f, ticket, make_error(ErrorKind::io, "broken")));
      REQUIRE(out.again);
      seen.push_back(out.last.to_json());
      RILLE_CO_TRY(out, co_await run.step_end(f, ticket, Value(1)));
      CHECK(run.step_heartbeat(f, ticket, Value(1)).error().kind == ErrorKind::state);
      co_return std::move(out.result);
    };
  };
  // Rows: the start, then one heartbeat a second; a place is before and after each.
  bool died = false;
  for (int at = 1; !died && at < 40; ++at) {
    StepWorld w;
    w.crash_at = {at};
    seen.clear();
    REQUIRE(run_to_end(w, script).ok());
    died = w.processes == 2 && seen.size() == 3 && seen[1] == "21";
  }
  CHECK(died);  // 2.4 s into the body: what it said at 2.0 s is on the disk
  CHECK(seen == std::vector<std::string>{"null", "21", "25"});
}
