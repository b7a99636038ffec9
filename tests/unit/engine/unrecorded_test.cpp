// A journal that cannot be written: the run stops where it stands, and goes on from there once it can be.
#include <catch2/catch.hpp>

#include "runtime/core/store/journal_failure.hpp"
#include "tests/unit/engine/steps_world.hpp"

using namespace rille;
using namespace rille::engine;
using namespace rille::engine::test;

namespace {

const std::string many_pages(40'000, 'x');  // kept in the row

void fill(StepWorld& world) {
  std::int64_t pages = 0;
  REQUIRE(world.disk->query("PRAGMA page_count", {}, [&](const store::Row& row) { pages = row.integer(0); }).ok());
  REQUIRE(world.disk->run("PRAGMA max_page_count=" + std::to_string(pages)).ok());
}

void free_space(StepWorld& world) { REQUIRE(world.disk->run("PRAGMA max_page_count=100000").ok()); }

StepCall call(std::string name) {
  StepCall c;
  c.name = std::move(name);
  return c;
}

// Its outcome meets a full disk, in the first process.
StepCall large_step(StepWorld& world, std::string name) {
  StepCall c = call(std::move(name));
  c.body = [&world](FiberId, const StepTicket&, int) -> Async<Value> {
    if (world.processes == 1) fill(world);
    co_return Value(many_pages);
  };
  return c;
}

std::string state_of_run(StepWorld& world) {
  std::string state;
  REQUIRE(world.disk->query("SELECT state FROM runs", {}, [&](const store::Row& row) { state = row.text(0); }).ok());
  return state;
}

Error first_end(StepWorld& world, const StepScript& script) {
  std::optional<Result<Value>> first = run_process(world, script);
  REQUIRE(first);
  REQUIRE_FALSE(first->ok());
  return first->error();
}

// Three steps; the script goes on whatever becomes of the second.
CppGuest::Body careless(Run& run, CppGuest&, StepWorld& world) {
  return [&run, &world](FiberId f) -> Async<Value> {
    StepCall a = call("a"), b = large_step(world, "b"), c = call("c");
    RILLE_CO_CHECK(co_await run_step(run, world, f, a));
    Result<Value> second = co_await run_step(run, world, f, b);
    RILLE_CO_CHECK(co_await run_step(run, world, f, c));
    co_return Value(second.ok());
  };
}

}  // namespace

TEST_CASE("an outcome that the journal does not take is not shown to the script") {
  StepWorld world;
  Error why = first_end(world, careless);
  CHECK(why.kind == ErrorKind::io);
  CHECK(why.code == "run_paused");
  CHECK_THAT(why.message, Catch::Contains("run r stops here: its record cannot be written: cannot use") &&
                              Catch::Contains("database or disk is full"));
  CHECK(why.hint == "free some space on that disk; then: rille resume r. What was recorded is not lost");
  CHECK(state_of_run(world) == "suspended");
  CHECK(world.begun["main/c#1"] == 0);
  free_space(world);
  Result<Value> end = run_to_end(world, careless);
  REQUIRE(end.ok());
  CHECK(*end->as_bool());
  CHECK(world.begun["main/a#1"] == 1);
  CHECK(world.begun["main/b#1"] == 2);
  CHECK(world.begun["main/c#1"] == 1);
  CHECK(state_of_run(world) == "done");
}

TEST_CASE("a run whose suspension cannot be written either ends its process, and is found interrupted") {
  StepWorld world;
  REQUIRE(world.disk
              ->run("CREATE TRIGGER no_room BEFORE UPDATE ON runs WHEN new.state='suspended' "
                    "BEGIN SELECT RAISE(ABORT, 'no room'); END")
              .ok());
  Error why = first_end(world, careless);
  CHECK(why.code == "run_paused");
  CHECK_THAT(why.message, Catch::Contains("no room"));
  CHECK(state_of_run(world) == "running");
  free_space(world);
  REQUIRE(run_to_end(world, careless).ok());
  CHECK(world.begun["main/c#1"] == 1);
}

TEST_CASE("what other fibers have under way is still recorded") {
  StepScript script = [](Run& run, CppGuest& guest, StepWorld& world) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      CppGuest::Body other = [&](FiberId g) -> Async<Value> {
        StepCall slow = call("slow"), next = call("next");
        slow.body = [&](FiberId h, const StepTicket&, int) -> Async<Value> {
          for (int i = 0; i < 20; ++i) RILLE_CO_CHECK(co_await sleep_for(run.loop(), 1));
          free_space(world);
          co_return Value(static_cast<double>(h));
        };
        RILLE_CO_CHECK(co_await run_step(run, world, g, slow));
        co_return co_await run_step(run, world, g, next);
      };
      std::string name = "other";
      RILLE_CO_TRY(FiberId child, run.spawn(f, name, guest.function(std::move(other)), Value()));
      StepCall b = large_step(world, "b");
      b.body = [&, inner = b.body](FiberId g, const StepTicket& t, int n) -> Async<Value> {
        RILLE_CO_CHECK(co_await sleep_for(run.loop(), 5));  // the other has begun
        co_return co_await inner(g, t, n);
      };
      RILLE_CO_CHECK(co_await run_step(run, world, f, b));
      RILLE_CO_CHECK(co_await run.join(f, child));
      co_return Value("end");
    };
  };
  StepWorld world;
  CHECK(first_end(world, script).code == "run_paused");
  CHECK(state_of_run(world) == "suspended");
  REQUIRE(run_to_end(world, script).ok());
  CHECK(world.begun["main/b#1"] == 2);
  CHECK(world.begun["main/other#1/slow#1"] == 1);
  CHECK(world.begun["main/other#1/next#1"] == 1);
}

TEST_CASE("a step that must be on the disk before it begins does not begin, nor does the script go on") {
  StepScript script = [](Run& run, CppGuest&, StepWorld& world) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      StepCall pay = call(std::string(20'000, 'p')), after = call("after");
      pay.options.effect = Effect::once;
      if (world.processes == 1) fill(world);
      (void)co_await run_step(run, world, f, pay);
      co_return co_await run_step(run, world, f, after);
    };
  };
  StepWorld world;
  CHECK(first_end(world, script).code == "run_paused");
  CHECK(world.begun.empty());
  free_space(world);
  REQUIRE(run_to_end(world, script).ok());
  CHECK(world.begun["main/after#1"] == 1);
  CHECK(world.begun.size() == 2);
}

TEST_CASE("what a fiber dies of does not fail the run when it is the journal's") {
  StepScript script = [](Run& run, CppGuest& guest, StepWorld& world) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      CppGuest::Body other = [&](FiberId g) -> Async<Value> {
        StepCall a = call("a");
        RILLE_CO_CHECK(co_await run_step(run, world, g, a));
        if (world.processes > 1) co_return Value();
        store::note_journal_failure();
        co_return make_error(ErrorKind::io, "cannot use 'journal.db': disk I/O error").with_operation("journal");
      };
      std::string name = "other";
      RILLE_CO_TRY(FiberId child, run.spawn(f, name, guest.function(std::move(other)), Value()));
      RILLE_CO_CHECK(co_await run.join(f, child));
      co_return Value();
    };
  };
  StepWorld world;
  CHECK_THAT(first_end(world, script).message, Catch::Contains("disk I/O error"));
  CHECK(state_of_run(world) == "suspended");
  REQUIRE(run_to_end(world, script).ok());
  CHECK(world.begun["main/other#1/a#1"] == 1);
}

TEST_CASE("a journal that has not failed is not believed to have: the error of a step ends the run") {
  StepScript script = [](Run& run, CppGuest&, StepWorld& world) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      StepCall a = call("a");
      a.body = [](FiberId, const StepTicket&, int) -> Async<Value> {
        co_return make_error(ErrorKind::io, "made up").with_operation("journal");
      };
      co_return co_await run_step(run, world, f, a);
    };
  };
  StepWorld world;
  if (store::journal_has_failed()) return;  // an earlier case of this process
  CHECK(first_end(world, script).message == "made up");
  CHECK(state_of_run(world) == "failed");
}

TEST_CASE("a run that stops for its journal can be cancelled, and cleans up") {
  StepScript script = [](Run& run, CppGuest&, StepWorld& world) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      StepCall b = large_step(world, "b"), clean = call("clean");
      b.body = [&, inner = b.body](FiberId g, const StepTicket& t, int n) -> Async<Value> {
        std::function<void()> stop = [&run] { run.cancel(make_error(ErrorKind::cancelled, "stop")); };
        run.loop().post(std::move(stop));
        co_return co_await inner(g, t, n);
      };
      ScopeId scope = run.scope_enter(f, "s");
      Result<Value> r = co_await run_step(run, world, f, b);
      free_space(world);
      std::optional<Error> failure;
      if (!r) failure = r.error();
      (void)co_await run.scope_settle(f, scope, failure);
      RILLE_CO_CHECK(co_await run_step(run, world, f, clean));
      run.scope_leave(f, scope);
      co_return r;
    };
  };
  StepWorld world;
  Error why = first_end(world, script);
  CHECK(why.kind == ErrorKind::cancelled);
  CHECK(state_of_run(world) == "cancelled");
  CHECK(world.begun["main/clean#1"] == 1);
}
