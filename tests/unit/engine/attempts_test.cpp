// Attempts of steps: counted over crashes, limited in time, paused; and the deadline of a run.
#include <catch2/catch.hpp>

#include "tests/unit/engine/steps_world.hpp"

using namespace rille;
using namespace rille::engine;
using namespace rille::engine::test;

namespace {

StepCall retried(std::string name, int attempts) {
  StepCall c;
  c.name = std::move(name);
  c.options.retry.attempts_max = attempts;
  c.options.retry.any_error = true;
  c.options.retry.counts_crashes = true;
  c.options.crashes_max = 5;
  return c;
}

StepScript only(StepCall call) {
  return [call](Run& run, CppGuest&, StepWorld& world) -> CppGuest::Body {
    return [&run, &world, call](FiberId f) { return run_step(run, world, f, call); };
  };
}

// Waits until its time is over, or `ms` have passed.
Async<Value> wait_in_body(Run& run, FiberId f, std::int64_t ms) {
  for (std::int64_t waited = 0; waited < ms; waited += 10) {
    if (const Error* why = run.cancelled(f)) co_return *why;
    RILLE_CO_CHECK(co_await sleep_for(run.loop(), 10));
  }
  co_return Value("ok");
}

// A step whose body waits.
StepScript waits(StepCall call, std::int64_t ms) {
  return [call, ms](Run& run, CppGuest&, StepWorld& world) -> CppGuest::Body {
    return [&run, &world, call, ms](FiberId f) -> Async<Value> {
      StepCall mine = call;
      mine.body = [&run, ms](FiberId g, const StepTicket&, int) { return wait_in_body(run, g, ms); };
      co_return co_await run_step(run, world, f, mine);
    };
  };
}

std::string run_state(StepWorld& world) {
  std::string state;
  (void)world.disk->query("SELECT state FROM runs WHERE id='r'", {},
                          [&](const store::Row& row) { state = row.text(0); });
  return state;
}

}  // namespace

TEST_CASE("no step begins more often than it has attempts, whatever two crashes do") {
  StepCall call = retried("flaky", 3);
  call.body = [](FiberId, const StepTicket&, int) -> Async<Value> { co_return make_error(ErrorKind::io, "broken"); };
  int by_crash = 0;
  crash_twice_everywhere(only(call), [&](StepWorld& w, const Result<Value>& r) {
    REQUIRE_FALSE(r.ok());
    CHECK(w.begun["main/flaky#1"] <= 3);
    bool used_up = r.error().code == "attempts_used_up";
    by_crash += used_up;
    if (!used_up) CHECK(r.error().message == "broken");
    CHECK(w.begun["main/flaky#1"] + w.processes - 1 >= 3);
  });
  CHECK(by_crash > 0);
}

TEST_CASE("a step that takes the process down each time ends the run") {
  for (Effect effect : {Effect::idempotent, Effect::once}) {
    StepCall call;
    call.name = "poison";
    call.options.effect = effect;
    call.options.probes = effect == Effect::once;
    call.options.crashes_max = 2;
    call.probe_knows = false;
    StepWorld world;
    StepScript script = [&](Run& run, CppGuest&, StepWorld& w) -> CppGuest::Body {
      return [&](FiberId f) -> Async<Value> {
        StepCall mine = call;
        mine.body = [&](FiberId, const StepTicket&, int) -> Async<Value> {
          w.crash_at.insert(w.places + 1);
          RILLE_CO_CHECK(co_await w.place(run.loop()));
          co_return Value();
        };
        co_return co_await run_step(run, w, f, mine);
      };
    };
    Result<Value> r = run_to_end(world, script);
    REQUIRE_FALSE(r.ok());
    CHECK(r.error().kind == ErrorKind::state);
    CHECK(r.error().code == "step_poisoned");
    CHECK(r.error().message == "step 'poison' has crashed the process 3 times");
    CHECK(world.begun["main/poison#1"] == 3);
    CHECK(world.processes == 4);
  }
}

TEST_CASE("a paused run stops once its bodies have ended, and its resumption grants new attempts") {
  StepScript script = [](Run& run, CppGuest& guest, StepWorld& world) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      CppGuest::Body other = [&](FiberId g) -> Async<Value> {
        StepCall slow, next;
        slow.name = "slow";
        slow.options.effect = Effect::once;
        slow.options.probes = true;
        slow.body = [&run](FiberId h, const StepTicket&, int) { return wait_in_body(run, h, 50); };
        next.name = "next";
        RILLE_CO_CHECK(co_await run_step(run, world, g, slow));
        co_return co_await run_step(run, world, g, next);
      };
      std::string name = "other";
      RILLE_CO_TRY(FiberId child, run.spawn(f, name, guest.function(std::move(other)), Value()));
      StepCall call = retried("upload", 2);
      call.options.retry.pauses = true;
      call.options.retry.initial_ms = 1;
      call.body = [&world](FiberId, const StepTicket&, int) -> Async<Value> {
        if (world.effects["main/upload#1"] < 5) co_return make_error(ErrorKind::auth, "the key has expired");
        co_return Value("ok");
      };
      RILLE_CO_TRY(Value v, co_await run_step(run, world, f, call));
      RILLE_CO_CHECK(co_await run.join(f, child));
      co_return v;
    };
  };
  StepWorld world;
  std::optional<Result<Value>> first = run_process(world, script);
  REQUIRE(first);
  REQUIRE_FALSE(first->ok());
  CHECK(first->error().code == "run_paused");
  CHECK_THAT(first->error().message, Catch::Contains("step 'upload' has used all its attempts: the key has expired"));
  CHECK_THAT(first->error().hint, Catch::Contains("rille resume r"));
  CHECK(run_state(world) == "suspended");
  CHECK(world.effects["main/upload#1"] == 2);
  CHECK(world.effects["main/other#1/slow#1"] == 1);
  CHECK(world.effects["main/other#1/next#1"] == 0);  // nothing new begins
  REQUIRE(run_to_end(world, script).ok());
  CHECK(world.processes == 3);
  CHECK(world.effects["main/upload#1"] == 5);
  CHECK(run_state(world) == "done");

  crash_twice_everywhere(script, [](StepWorld& w, const Result<Value>& r) {
    REQUIRE(r.ok());
    CHECK(w.effects["main/other#1/slow#1"] == 1);
    CHECK(w.effects["main/upload#1"] >= 5);
    CHECK(w.effects["main/upload#1"] <= 7);  // each crash cuts off one at most
  });
}

TEST_CASE("a paused run can be cancelled, and cleans up") {
  StepScript script = [](Run& run, CppGuest&, StepWorld& world) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      StepCall slow, call = retried("upload", 1), clean;
      clean.name = "clean";
      call.options.retry.pauses = true;
      call.body = [&](FiberId, const StepTicket&, int) -> Async<Value> {
        std::function<void()> stop = [&run] { run.cancel(make_error(ErrorKind::cancelled, "stop")); };
        run.loop().post(std::move(stop));
        co_return make_error(ErrorKind::io, "broken");
      };
      ScopeId scope = run.scope_enter(f, "s");
      Result<Value> r = co_await run_step(run, world, f, call);
      std::optional<Error> failure;
      if (!r) failure = r.error();
      (void)co_await run.scope_settle(f, scope, failure);
      RILLE_CO_CHECK(co_await run_step(run, world, f, clean));
      run.scope_leave(f, scope);
      co_return r;
    };
  };
  StepWorld world;
  std::optional<Result<Value>> out = run_process(world, script);
  REQUIRE(out);
  REQUIRE_FALSE(out->ok());
  CHECK(out->error().kind == ErrorKind::cancelled);
  CHECK(world.effects["main/clean#1"] == 1);
  CHECK(run_state(world) == "cancelled");
}

TEST_CASE("a run that exceeds a limit of time fails with it, even if its script catches the error") {
  StepScript script = [](Run& run, CppGuest&, StepWorld&) -> CppGuest::Body {
    return [&run](FiberId f) -> Async<Value> {
      run.loop().post([&run] { run.cancel(make_error(ErrorKind::timeout, "too long")); });
      Result<> slept = co_await run.sleep(f, "nap", 3'600'000, "x");
      co_return Value(slept ? "slept" : "caught");
    };
  };
  StepWorld world;
  std::optional<Result<Value>> out = run_process(world, script);
  REQUIRE(out);
  REQUIRE_FALSE(out->ok());
  CHECK(out->error().message == "too long");
  CHECK(run_state(world) == "failed");
}

TEST_CASE("a run's cleanup can be stopped, and with it the fibers that it spawned") {
  StepScript script = [](Run& run, CppGuest& guest, StepWorld& world) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      Error limit = make_error(ErrorKind::timeout, "too long");
      ScopeId scope = run.scope_enter(f, "s");
      run.loop().post([&run, limit] { run.cancel(limit); });
      Result<> slept = co_await run.sleep(f, "nap", 3'600'000, "x");
      (void)co_await run.scope_settle(f, scope, limit);
      FunctionRef wait = guest.function([&](FiberId g) -> Async<Value> {
        Result<> slept_too = co_await run.sleep(g, "nap", 3'600'000, "x");
        world.effects["spawned"] = slept_too ? 1 : 2;
        co_return Value();
      });
      RILLE_CO_CHECK(run.spawn(f, "helper", wait, Value()));
      run.loop().post([&run, limit] { run.stop_cleanup(limit); });
      Result<> rested = co_await run.sleep(f, "rest", 3'600'000, "x");
      world.effects["cleanup"] = rested ? 1 : 2;
      (void)co_await run.scope_release(f, scope, {});
      run.scope_leave(f, scope);
      co_return Value("caught");
    };
  };
  StepWorld world;
  std::optional<Result<Value>> out = run_process(world, script);
  REQUIRE(out);
  REQUIRE_FALSE(out->ok());
  CHECK(out->error().message == "too long");
  CHECK(world.effects["cleanup"] == 2);
  CHECK(world.effects["spawned"] == 2);
}

TEST_CASE("an attempt that takes too long is cancelled and tried again") {
  StepWorld world;
  StepCall call = retried("slow", 3);
  call.options.timeout_ms = 1000;
  Result<Value> r = run_to_end(world, waits(call, 5000));
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == ErrorKind::timeout);
  CHECK(r.error().code == "step_timeout");
  CHECK(r.error().message == "step 'slow' took longer than 1.0s");
  CHECK(world.begun["main/slow#1"] == 3);
  StepWorld quick;
  CHECK(run_to_end(quick, waits(call, 500)).ok());
  StepCall once = call;
  once.options = StepOptions();
  once.options.effect = Effect::once;
  once.options.timeout_ms = 1000;
  StepWorld single;
  CHECK(run_to_end(single, waits(once, 5000)).error().code == "step_timeout");
  CHECK(single.begun["main/slow#1"] == 1);
}

TEST_CASE("a body without heartbeats is cancelled, one with them is not") {
  for (bool beats : {false, true}) {
    StepCall call = retried("train", 1);
    call.options.heartbeat_timeout_ms = 300;
    StepWorld world;
    StepScript script = [&](Run& run, CppGuest&, StepWorld& w) -> CppGuest::Body {
      return [&](FiberId f) -> Async<Value> {
        StepCall mine = call;
        mine.body = [&](FiberId g, const StepTicket& ticket, int) -> Async<Value> {
          for (int i = 0; i < 20; ++i) {
            if (beats) RILLE_CO_CHECK(run.step_heartbeat(g, ticket, Value(i)));
            RILLE_CO_CHECK(co_await wait_in_body(run, g, 100));
          }
          co_return Value("ok");
        };
        co_return co_await run_step(run, w, f, mine);
      };
    };
    Result<Value> r = run_to_end(world, script);
    REQUIRE(r.ok() == beats);
    if (!beats) CHECK(r.error().message == "step 'train' gave no heartbeat for 300ms");
  }
}

TEST_CASE("the total time of a step goes on over crashes and the time between processes") {
  StepCall call = retried("slow", 100);
  call.options.total_timeout_ms = 10'000;
  call.options.retry.cap_ms = 10;
  StepWorld calm;
  Result<Value> r = run_to_end(calm, waits(call, 60'000));
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().message == "step 'slow' took longer, in all attempts together, than 10s");
  CHECK(calm.begun["main/slow#1"] == 1);
  for (int at = 1; at <= calm.places; ++at) {
    StepWorld world;
    world.crash_at = {at};
    if (run_process(world, waits(call, 60'000))) continue;
    world.time.pass(20'000);
    int before = world.begun["main/slow#1"];
    Result<Value> late = run_to_end(world, waits(call, 60'000));
    REQUIRE_FALSE(late.ok());
    CHECK(late.error().code == "step_timeout");
    CHECK(world.begun["main/slow#1"] <= (before ? before : 1));  // once it has begun, no more of it
  }
}

TEST_CASE("no attempt begins after max_elapsed") {
  StepCall call = retried("slow", 100);
  call.options.timeout_ms = 1000;
  call.options.retry.cap_ms = 1;
  call.options.retry.elapsed_ms_max = 3500;
  StepWorld world;
  CHECK(run_to_end(world, waits(call, 5000)).error().message == "step 'slow' took longer than 1.0s");
  CHECK(world.begun["main/slow#1"] == 4);
}

TEST_CASE("a run is cancelled at its deadline, whatever a crash does, and cleans up") {
  StepScript script = [](Run& run, CppGuest&, StepWorld& world) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      ScopeId scope = run.scope_enter(f, "s");
      Result<> slept = co_await run.sleep(f, "long", 3'600'000, "test");
      std::optional<Error> failure;
      if (!slept) failure = slept.error();
      (void)co_await run.scope_settle(f, scope, failure);
      StepCall clean;
      clean.name = "clean";
      RILLE_CO_CHECK(co_await run_step(run, world, f, clean));
      run.scope_leave(f, scope);
      if (!slept) co_return slept.error();
      co_return Value();
    };
  };
  int last = 1;
  for (int at = 0; at <= last; ++at) {
    StepWorld world;
    std::int64_t began = world.time.wall_us();
    world.deadline_us = began + 60'000'000;
    world.crash_at = {at};
    Result<Value> r = run_to_end(world, script);
    if (at == 0) last = world.places;
    REQUIRE_FALSE(r.ok());
    CHECK(r.error().kind == ErrorKind::timeout);
    CHECK(r.error().code == "run_deadline");
    CHECK(world.time.wall_us() - began < 70'000'000);
    CHECK(world.effects["main/clean#1"] >= 1);
    CHECK(run_state(world) == "cancelled");
  }
}

TEST_CASE("a wall clock that is set back, or forward, makes no wait longer") {
  for (std::int64_t back_ms : {-7'200'000, 0, 7'200'000}) {
    for (const char* what : {"sleep", "signal", "deadline"}) {
      StepScript script = [=](Run& run, CppGuest&, StepWorld& world) -> CppGuest::Body {
        return [=, &run, &world](FiberId f) -> Async<Value> {
          world.time.add(60'000, [&world, back_ms] { world.time.set_wall_back(back_ms); });
          if (what == std::string_view("sleep")) RILLE_CO_CHECK(co_await run.sleep(f, "s", 600'000, "test"));
          if (what == std::string_view("signal"))
            RILLE_CO_CHECK(co_await run.signal(f, "s", 600'000, Value("nobody"), "test"));
          if (what == std::string_view("deadline")) RILLE_CO_CHECK(co_await run.sleep(f, "s", 86'400'000, "test"));
          co_return Value();
        };
      };
      StepWorld world;
      if (what == std::string_view("deadline")) world.deadline_us = world.time.wall_us() + 600'000'000;
      const std::int64_t began_ns = world.time.monotonic_ns();
      Result<Value> r = run_to_end(world, script);
      INFO(what << " back by " << back_ms << " ms");
      CHECK(r.ok() == (what != std::string_view("deadline")));
      CHECK((world.time.monotonic_ns() - began_ns) / 1'000'000 < 670'000);
    }
  }
}
