// The limit disk_bytes: what a run writes into the journal beside its results.
#include <catch2/catch.hpp>

#include "tests/unit/engine/steps_world.hpp"

using namespace rille;
using namespace rille::engine;
using namespace rille::engine::test;

namespace {

// Runs the body under the limit.
Result<Value> limited(StepWorld& world, std::int64_t bytes, const StepScript& script) {
  std::optional<Result<Value>> out = run_process(world, [&](Run& run, CppGuest& guest, StepWorld& w) {
    RunLimits limits;
    limits.disk = std::make_shared<DiskUse>(bytes);
    run.limit(limits);
    return script(run, guest, w);
  });
  REQUIRE(out);
  return std::move(*out);
}

std::int64_t number(StepWorld& world, const std::string& sql) {
  std::int64_t n = -1;
  REQUIRE(world.disk->query(sql, {}, [&](const store::Row& row) { n = row.integer(0); }).ok());
  return n;
}

}  // namespace

TEST_CASE("disk: a step that is tried again and again fills the audit trail up to the limit") {
  StepWorld world;
  const Result<Value> out = limited(world, 20'000, [](Run& run, CppGuest&, StepWorld& w) -> CppGuest::Body {
    return [&run, &w](FiberId f) -> Async<Value> {
      StepCall call;
      call.name = "s";
      call.options.retry.attempts_max = 500;
      call.options.retry.initial_ms = call.options.retry.cap_ms = 1;
      call.body = [](FiberId, const StepTicket&, int) -> Async<Value> {
        co_return make_error(ErrorKind::network, std::string(2000, 'x')).with_retry();
      };
      co_return co_await run_step(run, w, f, call);
    };
  });
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().code == "disk_bytes");
  CHECK(world.begun["main/s#1"] < 100);
}

TEST_CASE("disk: a script that goes on after refused results is ended") {
  StepWorld world;
  (void)limited(world, 2'000, [](Run& run, CppGuest&, StepWorld& w) -> CppGuest::Body {
    return [&run, &w](FiberId f) -> Async<Value> {
      for (int i = 0; i < 5'000; ++i) {
        StepCall call;
        call.name = "s";
        (void)co_await run_step(run, w, f, call);
        (void)co_await sleep_for(run.loop(), 1);
      }
      co_return Value("done");
    };
  });
  CHECK(number(world, "SELECT count(*) FROM entries") < 1'000);
}

TEST_CASE("disk: cleanup that goes on after refused results is stopped") {
  StepWorld world;
  const Result<Value> out = limited(world, 2'000, [](Run& run, CppGuest&, StepWorld& w) -> CppGuest::Body {
    return [&run, &w](FiberId f) -> Async<Value> {
      const ScopeId scope = run.scope_enter(f, "s");
      (void)co_await run.scope_settle(f, scope, make_error(ErrorKind::invalid, "failed"));
      for (int i = 0; i < 5'000; ++i) {
        StepCall call;
        call.name = "s";
        (void)co_await run_step(run, w, f, call);
        (void)co_await sleep_for(run.loop(), 1);
      }
      w.effects["stopped"] = run.cancelled(f) != nullptr;
      std::uint64_t seed = 0;
      w.effects["plain"] = run.plain_begin(f, "plain", "test", seed);
      (void)co_await run.scope_release(f, scope, {});
      run.scope_leave(f, scope);
      co_return make_error(ErrorKind::invalid, "failed");
    };
  });
  CHECK(out.error().message == "failed");
  CHECK(world.effects["stopped"] == 1);
  CHECK(world.effects["plain"] == 0);
  CHECK(number(world, "SELECT count(*) FROM entries") < 1'000);
}

TEST_CASE("disk: runs that share the limit share what they write beyond it") {
  const auto disk = std::make_shared<DiskUse>(2'000);
  std::int64_t rows = 0;
  for (int i = 0; i < 5; ++i) {
    StepWorld world;
    (void)run_process(world, [&](Run& run, CppGuest&, StepWorld& w) -> CppGuest::Body {
      RunLimits limits;
      limits.disk = disk;
      run.limit(limits);
      return [&run, &w](FiberId f) -> Async<Value> {
        for (int n = 0; n < 1'000; ++n) {
          StepCall call;
          call.name = "s";
          (void)co_await run_step(run, w, f, call);
          (void)co_await sleep_for(run.loop(), 1);
        }
        co_return Value("done");
      };
    });
    rows += number(world, "SELECT count(*) FROM entries");
  }
  CHECK(rows < 500);
}

TEST_CASE("disk: the sources that a script loads count, each text once") {
  StepWorld world;
  const auto source = [](char c) { return [c]() -> Result<std::string> { return std::string(1'000, c); }; };
  const Result<Value> out = limited(world, 1'900, [&](Run& run, CppGuest&, StepWorld& w) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      RILLE_CO_TRY(const std::string first, run.pinned("a", source('a')));
      StepCall call;
      call.name = "s";
      RILLE_CO_CHECK(co_await run_step(run, w, f, call));  // the journal has written `a` then
      RILLE_CO_TRY(const std::string same, run.pinned("b", source('a')));
      CHECK(first == same);
      RILLE_CO_TRY(const std::string other, run.pinned("c", source('c')));
      co_return Value(other);
    };
  });
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().kind == ErrorKind::quota);
  CHECK(out.error().code == "disk_bytes");
  CHECK(number(world, "SELECT count(*) FROM sources") == 2);
}

TEST_CASE("disk: a large error of the run is not recorded beyond the limit") {
  StepWorld world;
  const ErrorKind kind = GENERATE(ErrorKind::invalid, ErrorKind::cancelled);
  const Result<Value> out = limited(world, 10'000, [kind](Run&, CppGuest&, StepWorld&) -> CppGuest::Body {
    return [kind](FiberId) -> Async<Value> { co_return make_error(kind, std::string(100'000, 'x')); };
  });
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().kind == kind);
  CHECK(out.error().message.starts_with("xxx"));
  CHECK(out.error().hint.find("disk_bytes") != std::string::npos);
  CHECK(number(world, "SELECT length(error) FROM runs") < 5'000);
  CHECK(number(world, "SELECT state='cancelled' FROM runs") == (kind == ErrorKind::cancelled));
}
