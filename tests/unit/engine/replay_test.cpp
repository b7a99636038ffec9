#include <malloc.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "runtime/core/store/journal_failure.hpp"
#include "tests/unit/engine/world.hpp"

using namespace rille;
using namespace rille::engine;
using namespace rille::engine::test;

namespace {

// A step whose body is an effect that is counted, with a crash place before and after it.
Async<Value> step(Run& run, World& world, FiberId f, std::string name, Value result, Operation op = {}) {
  op.name = name;
  op.source = "test:" + name;
  RILLE_CO_TRY(StepTicket ticket, co_await run.step_begin(f, op, {}));
  if (ticket.recorded) co_return std::move(*ticket.recorded);
  RILLE_CO_CHECK(co_await world.place(run.loop()));
  ++world.effects[ticket.key];
  RILLE_CO_TRY(StepOutcome out, co_await run.step_end(f, ticket, result));
  RILLE_CO_CHECK(co_await world.place(run.loop()));
  co_return std::move(out.result);
}

CppGuest::Body sequence(Run& run, CppGuest&, World& world) {
  return [&](FiberId f) -> Async<Value> {
    double sum = 0;
    for (int i = 1; i <= 3; ++i) {
      RILLE_CO_TRY(Value v, co_await step(run, world, f, "add", Value(i)));
      sum += *v.as_number();
    }
    RILLE_CO_TRY(double t, co_await run.now(f, "test"));
    RILLE_CO_CHECK(co_await run.sleep(f, "nap", 1, "test"));
    RILLE_CO_TRY(Value last, co_await step(run, world, f, "clock", Value(t)));
    co_return Value(sum + (*last.as_number() == t ? 0 : 100));
  };
}

CppGuest::Body rents(Run& run, CppGuest& guest, World& world) {
  return [&](FiberId f) -> Async<Value> {
    RILLE_CO_TRY(LeaseView box, co_await run.rent(f, "box", Value(), "test"));
    (void)box;
    auto worker = [&run, &world](std::string name) -> CppGuest::Body {
      return [&run, &world, name](FiberId g) -> Async<Value> {
        RILLE_CO_TRY(LeaseView own, co_await run.rent(g, name, Value(), "test"));
        (void)own;
        co_return co_await step(run, world, g, "work", Value(name));
      };
    };
    RILLE_CO_TRY(FiberId a, run.spawn(f, "w", guest.function(worker("a")), Value()));
    RILLE_CO_TRY(FiberId b, run.spawn(f, "w", guest.function(worker("b")), Value()));
    RILLE_CO_CHECK(co_await run.join(f, a));
    RILLE_CO_CHECK(co_await run.join(f, b));
    co_return co_await step(run, world, f, "end", Value("done"));
  };
}

CppGuest::Body races(Run& run, CppGuest& guest, World& world) {
  return [&](FiberId f) -> Async<Value> {
    auto runner = [&run, &world](int steps) -> CppGuest::Body {
      return [&run, &world, steps](FiberId g) -> Async<Value> {
        for (int i = 0; i < steps; ++i) RILLE_CO_CHECK(co_await step(run, world, g, "lap", Value(i)));
        co_return Value();
      };
    };
    ScopeId scope = run.scope_enter(f, "race");
    std::vector<FiberId> fibers;
    for (int steps : {3, 2, 4}) {
      RILLE_CO_TRY(FiberId id, run.spawn(f, "r", guest.function(runner(steps)), Value()));
      fibers.push_back(id);
    }
    RILLE_CO_TRY(std::size_t winner, co_await run.join_any(f, fibers));
    for (FiberId id : fibers) run.cancel_fiber(id, make_error(ErrorKind::cancelled, "lost"));
    RILLE_CO_CHECK(co_await run.scope_settle(f, scope, std::nullopt));
    RILLE_CO_CHECK(co_await run.scope_release(f, scope, {}));
    run.scope_leave(f, scope);
    co_return co_await step(run, world, f, "winner", Value(static_cast<int>(winner)));
  };
}

// Holds a machine and a child while it works, and has durable work to do whenever it ends.
CppGuest::Body cleans_up(Run& run, CppGuest& guest, World& world) {
  return [&](FiberId f) -> Async<Value> {
    ScopeId scope = run.scope_enter(f, "s");
    auto work = [&](FiberId g) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await run.rent(g, "box", Value(), "test"));
      (void)box;
      CppGuest::Body child = [&run, &world](FiberId c) -> Async<Value> {
        for (int i = 0; i < 3; ++i) RILLE_CO_CHECK(co_await step(run, world, c, "lap", Value(i)));
        co_return Value();
      };
      RILLE_CO_TRY(FiberId id, run.spawn(g, "child", guest.function(std::move(child)), Value()));
      RILLE_CO_CHECK(co_await step(run, world, g, "one", Value(1)));
      RILLE_CO_CHECK(co_await run.join(g, id));
      co_return co_await step(run, world, g, "two", Value(2));
    };
    Result<Value> result = co_await work(f);
    std::optional<Error> failure;
    if (!result) failure = result.error();
    (void)co_await run.scope_settle(f, scope, failure);
    RILLE_CO_CHECK(co_await step(run, world, f, "clean", Value()));
    RILLE_CO_CHECK(co_await step(run, world, f, "clean", Value()));
    RILLE_CO_CHECK(co_await run.scope_release(f, scope, {}));
    run.scope_leave(f, scope);
    if (!result) co_return result.error();
    co_return co_await step(run, world, f, "end", Value("done"));
  };
}

void crash_everywhere(const Process::Script& script, const std::function<void(World&, const Result<Value>&)>& check,
                      bool same_result = true) {
  World calm;
  Result<Value> expected = Process::settle(calm, script, -1);
  int places = calm.places;
  REQUIRE(places > 3);
  check(calm, expected);
  for (int at = 1; at <= places; ++at) {
    INFO("crash at place " << at << " of " << places);
    World world;
    Result<Value> r = Process::settle(world, script, at);
    if (!r) UNSCOPED_INFO(r.error().summary());
    REQUIRE(r.ok() == expected.ok());
    if (r && same_result) CHECK(r->to_json() == expected->to_json());
    check(world, r);
  }
}

}  // namespace

TEST_CASE("a crash at any place repeats no finished step and ends with the same result") {
  crash_everywhere(sequence, [](World& world, const Result<Value>& r) {
    REQUIRE(r.ok());
    CHECK(r->to_json() == r->to_json());
    for (const auto& [key, n] : world.effects) CHECK(n <= 2);  // twice only for the one that a crash cut off
    int repeats = 0;
    for (const auto& [key, n] : world.effects) repeats += n - 1;
    CHECK(repeats <= 1);
  });
}

TEST_CASE("a crash at any place leaks no machine and rents none twice") {
  crash_everywhere(rents, [](World& world, const Result<Value>& r) {
    REQUIRE(r.ok());
    CHECK(world.machines.empty());
    CHECK(world.creates.size() == 3);
    for (const auto& [token, n] : world.creates) CHECK(n == 1);
  });
}

TEST_CASE("a cancelled run unwinds from the same place after a crash at any later one") {
  World calm;
  REQUIRE(Process::settle(calm, cleans_up, -1).ok());
  int schedules = 0, cancelled = 0;
  for (int cancel = 1; cancel <= calm.places; ++cancel) {
    for (int crash = cancel; crash <= calm.places + 2; ++crash) {
      if (!std::getenv("RILLE_LONG") && (cancel + crash) % 3) continue;
      INFO("cancelled at place " << cancel << ", crash at place " << crash);
      World world;
      world.cancel_at = cancel;
      Result<Value> r = Process::settle(world, cleans_up, crash);
      ++schedules;
      if (!r) {
        ++cancelled;
        UNSCOPED_INFO(r.error().summary());
        REQUIRE(r.error().kind == ErrorKind::cancelled);
        CHECK(world.effects.count("main/clean#2") == 1);
      }
      CHECK(world.machines.empty());
      int repeats = 0;
      for (const auto& [key, n] : world.effects) repeats += n - 1;
      CHECK(repeats <= 2);  // what the crash cut off: one in each fiber
    }
  }
  CHECK(cancelled > schedules / 2);
}

TEST_CASE("a release that failed and was caught stays failed after a crash at any place") {
  auto script = [](Run& run, CppGuest&, World& world) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      ScopeId scope = run.scope_enter(f, "s");
      RILLE_CO_TRY(LeaseView box, co_await run.rent(f, "box", Value(), "test"));
      (void)box;
      (void)co_await run.scope_settle(f, scope, std::nullopt);
      Result<> released = co_await run.scope_release(f, scope, {});
      run.scope_leave(f, scope);
      RILLE_CO_CHECK(co_await step(run, world, f, "one", Value(released.ok())));
      co_return co_await step(run, world, f, "two", Value(released.ok()));
    };
  };
  World calm;
  calm.fail_terminates = 100;
  REQUIRE(Process::settle(calm, script, -1).error().kind == ErrorKind::state);  // at its end, too
  for (int at = 1; at <= calm.places; ++at) {
    INFO("crash at place " << at);
    World world;
    world.fail_terminates = 3;
    Result<Value> r = Process::settle(world, script, at);
    if (!r) UNSCOPED_INFO(r.error().summary());
    CHECK((r.ok() || r.error().kind == ErrorKind::state));
    CHECK((!r.ok() || world.machines.empty()));
  }
}

TEST_CASE("a race that is decided stays decided after a crash at any place") {
  // Before the decision a crash may let another fiber win; after it, the resumed run must follow the record.
  auto check = [](World& world, const Result<Value>& r) {
    REQUIRE(r.ok());
    CHECK(world.effects.at("main/winner#1") <= 2);
  };
  crash_everywhere(races, check, false);
}

TEST_CASE("a failing child ends its siblings and what they hold") {
  World world;
  auto script = [](Run& run, CppGuest& guest, World& w) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await run.rent(f, "box", Value(), "test"));
      (void)box;
      RILLE_CO_TRY(FiberId bad, run.spawn(f, "bad", guest.function([&](FiberId g) -> Async<Value> {
        RILLE_CO_CHECK(co_await step(run, w, g, "before", Value()));
        co_return make_error(ErrorKind::state, "broken child");
      }),
                                          Value()));
      (void)bad;
      RILLE_CO_CHECK(co_await run.sleep(f, "long", 1'000'000, "test"));
      co_return Value("unreached");
    };
  };
  Result<Value> r = Process::settle(world, script, -1);
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().message == "broken child");
  CHECK(world.machines.empty());
}

TEST_CASE("a changed script is stopped before any effect, with both places named") {
  World world;
  auto first = [](Run& run, CppGuest&, World& w) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      RILLE_CO_CHECK(co_await step(run, w, f, "one", Value()));
      RILLE_CO_CHECK(co_await step(run, w, f, "two", Value()));
      co_return Value();
    };
  };
  auto second = [](Run& run, CppGuest&, World& w) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      RILLE_CO_CHECK(co_await step(run, w, f, "one", Value()));
      co_return co_await step(run, w, f, "three", Value());
    };
  };
  world.crash_at = 4;  // after step two was recorded
  CHECK_FALSE(Process::run(world, first).has_value());
  world.crash_at = -1;
  auto out = Process::run(world, second);
  REQUIRE(out.has_value());
  REQUIRE_FALSE(out->ok());
  CHECK(out->error().kind == ErrorKind::divergence);
  CHECK(out->error().message.find("test:three") != std::string::npos);
  CHECK(out->error().message.find("test:two") != std::string::npos);
  CHECK(world.effects.count("main/three#1") == 0);
}

TEST_CASE("the cluster that a rent names is no part of its record: older ones do not say it") {
  const auto script = [](bool says) -> Process::Script {
    return [says](Run& run, CppGuest&, World& w) -> CppGuest::Body {
      return [&run, &w, says](FiberId f) -> Async<Value> {
        Value options{Value::Object{}};
        if (says) options.set("cluster", "gang");
        RILLE_CO_TRY(LeaseView box, co_await run.rent(f, "box", options, "test"));
        (void)box;
        co_return co_await step(run, w, f, "after", Value(7));
      };
    };
  };
  int resumed = 0;
  for (int crash_at = 1; crash_at < 12; ++crash_at) {
    World world;
    world.crash_at = crash_at;
    std::optional<Result<Value>> out = Process::run(world, script(false));
    if (!out) {
      ++resumed;
      world.crash_at = -1;
      out = Process::run(world, script(true));
    }
    REQUIRE(out);
    if (!out->ok()) FAIL(out->error().summary());
    CHECK(**out == Value(7));
  }
  CHECK(resumed > 1);
}

TEST_CASE("a script that ends too early, or waits elsewhere, has diverged") {
  auto two = [](Run& run, CppGuest&, World& w) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      RILLE_CO_CHECK(co_await step(run, w, f, "one", Value()));
      co_return co_await step(run, w, f, "two", Value());
    };
  };
  auto none = [](Run&, CppGuest&, World&) -> CppGuest::Body {
    return [](FiberId) -> Async<Value> { co_return Value(); };
  };
  auto elsewhere = [](Run& run, CppGuest& guest, World& w) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      RILLE_CO_TRY(
          FiberId child,
          run.spawn(f, "child", guest.function([&](FiberId g) { return step(run, w, g, "one", Value()); }), Value()));
      RILLE_CO_CHECK(co_await run.join(f, child));
      co_return Value();
    };
  };
  for (const Process::Script& other : {Process::Script(none), Process::Script(elsewhere)}) {
    World world;
    world.crash_at = 4;
    CHECK_FALSE(Process::run(world, two).has_value());
    world.crash_at = -1;
    auto out = Process::run(world, other);
    REQUIRE(out.has_value());
    REQUIRE_FALSE(out->ok());
    CHECK(out->error().kind == ErrorKind::divergence);
    CHECK(world.effects.size() == 2);
  }
}

TEST_CASE("a retryable failure is tried again, then recorded") {
  World world;
  auto script = [](Run& run, CppGuest&, World& w) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      StepOptions options;
      options.retry.attempts_max = 3;
      options.retry.initial_ms = 1;
      Operation op;
      op.name = "flaky";
      RILLE_CO_TRY(StepTicket ticket, co_await run.step_begin(f, op, options));
      if (ticket.recorded) co_return std::move(*ticket.recorded);
      while (true) {
        ++w.effects["tries"];
        RILLE_CO_TRY(StepOutcome out,
                     co_await run.step_end(f, ticket, make_error(ErrorKind::network, "down").with_retry()));
        if (!out.again) co_return std::move(out.result);
      }
    };
  };
  Result<Value> r = Process::settle(world, script, -1);
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().message == "down");
  CHECK(world.effects["tries"] == 3);
  Result<Value> again = Process::settle(world, script, -1);
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().message == "down");
  CHECK(world.effects["tries"] == 3);
}

TEST_CASE("a refusal after a lost answer does not forget the machine that the lost one made") {
  World world;
  world.lose_answer = 1;  // the first create makes a machine, but its answer never comes
  world.refuse_from = 2;  // and the second call says that there is no capacity
  auto script = [](Run& run, CppGuest&, World&) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await run.rent(f, "box", Value(), "test"));
      co_return Value(box.machine_id);
    };
  };
  Result<Value> r = Process::settle(world, script, -1);
  REQUIRE(r.ok());
  CHECK(world.creates.size() == 1);
  CHECK(world.machines.empty());
}

TEST_CASE("a rent that fails and cannot be settled says both, and its scope tries again") {
  World world;
  world.lose_answer = 1;
  world.fail_lists = 4;  // as often as the rent looks for what the lost answer made
  world.fail_terminates = 5;
  auto script = [](Run& run, CppGuest&, World& w) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      auto box = co_await run.rent(f, "box", Value(), "test");
      CHECK(w.machines.size() == 1);
      if (!box) co_return box.error();
      co_return Value();
    };
  };
  auto out = Process::run(world, script);
  REQUIRE(out);
  REQUIRE_FALSE(out->ok());
  const Error& e = out->error();
  CHECK_THAT(e.message, Catch::Contains("could not be settled") && Catch::Contains("no route"));
  CHECK_THAT(e.hint, Catch::Contains("rille release"));
  CHECK(world.machines.empty());
}

TEST_CASE("a rent whose journal is full stops the run, which a resume goes on with on the same machine") {
  World world;
  auto change = [&](const char* sql) {
    auto loop = Loop::create().value();
    auto journal = store::Journal::open(*loop, world.dir.path + "/journal.db").value();
    store::Journal::Write write = [sql](store::Db& db) { return db.script(sql); };
    REQUIRE(run_blocking(*loop, journal->commit(write)));
  };
  change(
      "CREATE TRIGGER full BEFORE UPDATE ON leases WHEN NEW.state='live' "
      "BEGIN SELECT RAISE(ABORT,'database or disk is full'); END");
  store::note_journal_failure();  // the trigger's error is not one of the disk
  auto script = [](Run& run, CppGuest&, World& w) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      auto box = co_await run.rent(f, "box", Value(), "test");
      CHECK(w.machines.size() == 1);
      if (!box) co_return box.error();
      co_return Value();
    };
  };
  auto out = Process::run(world, script);
  REQUIRE(out);
  REQUIRE_FALSE(out->ok());
  CHECK(out->error().code == "run_paused");
  CHECK_THAT(out->error().message, Catch::Contains("disk is full"));
  CHECK(world.machines.size() == 1);
  change("DROP TRIGGER full");
  out = Process::run(world, script);
  REQUIRE(out);
  CHECK(out->ok());
  CHECK(world.creates.size() == 1);
  CHECK(world.machines.empty());
}

TEST_CASE("a budget warns once its share is reserved, and says what it refuses") {
  World world;
  auto script = [](Run& run, CppGuest&, World&) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      Value budget = Value().set("limit", 2.0).set("alert", 1.5);
      CHECK(run.set_budget(f, budget).error().message == "alert = 1.5: expected a share of the limit, from 0 to 1");
      budget.set("alert", 0.8);
      RILLE_CO_CHECK(run.set_budget(f, budget));
      Value hour = Value().set("ttl", "1h").set("min_ttl", "1h");
      for (const char* name : {"a", "b"}) {
        RILLE_CO_TRY(LeaseView box, co_await run.rent(f, name, hour, "test"));
        (void)box;
      }
      auto third = co_await run.rent(f, "c", hour, "test");
      CHECK(third.error().kind == ErrorKind::budget);
      co_return Value();
    };
  };
  auto out = Process::run(world, script);
  REQUIRE(out);
  REQUIRE(out->ok());
  auto loop = Loop::create().value();
  auto journal = store::Journal::open(*loop, world.dir.path + "/journal.db").value();
  std::vector<std::string> warnings;
  (void)journal->reader().query("SELECT data FROM events WHERE event='warning'", {},
                                [&](const store::Row& row) { warnings.push_back(row.text(0)); });
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::Contains("$2.00 of the run's budget of $2.00 are spent or reserved"));
}

TEST_CASE("a resumed run may spend what its host program allows now, but not more than its script's budget") {
  World world;
  int processes = 0;
  const std::int64_t allowed_now = GENERATE(1'200'000, 2'500'000, -1);
  const bool own = GENERATE(false, true);
  auto script = [&](Run& run, CppGuest&, World&) -> CppGuest::Body {
    RunLimits limits;
    limits.spend_micros = ++processes == 1 ? 1'500'000 : allowed_now;
    run.limit(limits);
    return [&](FiberId f) -> Async<Value> {
      if (own) RILLE_CO_CHECK(run.set_budget(f, Value().set("limit", 1.5)));
      const Value hour = Value().set("ttl", "1h").set("min_ttl", "1h");
      RILLE_CO_TRY(LeaseView first, co_await run.rent(f, "a", hour, "test"));
      (void)first;
      const auto second = co_await run.rent(f, "b", hour, "test");
      CHECK(second.error().kind == ErrorKind::budget);
      if (processes == 1) world.crash_at = world.places + 1;
      RILLE_CO_CHECK(co_await world.place(run.loop()));
      if (allowed_now > 0) {
        const Result<> raised = run.set_budget(f, Value().set("limit", 3.0));
        CHECK(raised.error().kind == ErrorKind::budget);
      }
      const auto third = co_await run.rent(f, "c", hour, "test");
      CHECK(third.ok() == (!own && allowed_now != 1'200'000));
      co_return Value();
    };
  };
  REQUIRE_FALSE(Process::run(world, script));
  const auto out = Process::run(world, script);
  REQUIRE(out);
  CHECK(out->ok());
}

TEST_CASE("each message reaches one fiber, also when several wait for it") {
  World world;
  {
    auto loop = Loop::create().value();
    auto journal = store::Journal::open(*loop, world.dir.path + "/journal.db").value();
    store::Journal::Write send = [](store::Db& db) {
      return db.script(
          "CREATE TRIGGER send AFTER INSERT ON runs BEGIN "
          "INSERT INTO inbox(run,name,message_id,payload,at_us) VALUES(NEW.id,'go','m1','1',1); "
          "INSERT INTO inbox(run,name,message_id,payload,at_us) VALUES(NEW.id,'go','m2','2',2); END");
    };
    REQUIRE(run_blocking(*loop, journal->commit(send)));
  }
  std::vector<double> got;
  auto script = [&got](Run& run, CppGuest& guest, World&) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      std::vector<FiberId> fibers;
      for (int i = 0; i < 3; ++i) {
        CppGuest::Body wait = [&](FiberId g) -> Async<Value> {
          RILLE_CO_TRY(Value v, co_await run.signal(g, "go", 20, Value(0), "test"));
          got.push_back(*v.as_number());
          co_return v;
        };
        RILLE_CO_TRY(FiberId child, run.spawn(f, "w", guest.function(wait), Value()));
        fibers.push_back(child);
      }
      for (FiberId child : fibers) RILLE_CO_CHECK(co_await run.join(f, child));
      co_return Value();
    };
  };
  REQUIRE(Process::settle(world, script, -1));
  std::sort(got.begin(), got.end());
  CHECK(got == std::vector<double>{0, 1, 2});
}

TEST_CASE("fibers that have ended are forgotten: a run may have any number of them, one after another") {
  World world;
  std::size_t early = 0, late = 0;
  auto script = [&](Run& run, CppGuest& guest, World&) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      CppGuest::Body nothing = [](FiberId) -> Async<Value> { co_return Value(); };
      FunctionRef body = guest.function(nothing);
      for (int i = 0; i < 300'000; ++i) {
        std::string name = "w";
        RILLE_CO_TRY(FiberId child, run.spawn(f, name, body, Value()));
        RILLE_CO_CHECK(co_await run.join(f, child));
        if (i == 10'000) early = mallinfo2().uordblks;
      }
      late = mallinfo2().uordblks;
      co_return Value();
    };
  };
  REQUIRE(Process::settle(world, script, -1));
  CHECK(late < early + (1 << 20));
}

TEST_CASE("a failed fiber's error can be asked for until its scope is left") {
  World world;
  auto script = [](Run& run, CppGuest& guest, World&) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      ScopeId inner = run.scope_enter(f, "inner");
      CppGuest::Body fails = [](FiberId) -> Async<Value> { co_return make_error(ErrorKind::io, "no disk"); };
      RILLE_CO_TRY(FiberId child, run.spawn(f, "w", guest.function(fails), Value()));
      Result<> settled = co_await run.scope_settle(f, inner, std::nullopt);
      CHECK(settled.error().message == "no disk");
      CHECK(run.ended(child));
      for (int i = 0; i < 2; ++i) {
        Result<> joined = co_await run.join(f, child);
        REQUIRE_FALSE(joined.ok());
        CHECK(joined.error().message == "no disk");
      }
      run.scope_leave(f, inner);
      co_return Value();
    };
  };
  CHECK(Process::settle(world, script, -1).ok());
}
