// rille.volume of a name whose deletion has failed, or whose scope could not end its machine.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/unit/engine/world.hpp"

using namespace rille;
using namespace rille::engine;
using namespace rille::engine::test;

TEST_CASE("a script that asks again for a volume goes on with its failed deletion, after a crash at any place") {
  auto script = [](Run& run, CppGuest&, World&) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      const Value options = Value().set("size", "10GB");
      RILLE_CO_TRY(const VolumeView first, co_await run.volume(f, "data", options, "test"));
      const Result<> deleted = co_await run.release(f, first.id, "test");
      Result<VolumeView> second = co_await run.volume(f, "data", options, "test");
      if (!second) {  // the deletion has failed a second time
        if (second.error().code != "volume_busy" || !second.error().cause) co_return second.error();
        second = co_await run.volume(f, "data", options, "test");
      }
      if (!second) co_return second.error();
      RILLE_CO_CHECK(co_await run.release(f, second->id, "test"));
      co_return Value().set("deleted", deleted.ok()).set("same", first.id == second->id);
    };
  };
  World calm;
  calm.fail_terminates = 10;  // a release gives up after 5
  const Result<Value> r = Process::settle(calm, script, -1);
  if (!r) FAIL(r.error().summary());
  CHECK(r->to_json() == R"({"deleted":false,"same":false})");
  CHECK(calm.creates.size() == 2);
  CHECK(calm.machines.empty());
  for (int at = 1; at <= calm.places; ++at) {
    INFO("crash at place " << at);
    World world;
    world.fail_terminates = 10;
    const Result<Value> resumed = Process::settle(world, script, at);
    if (!resumed) FAIL(resumed.error().summary());
    CHECK(world.machines.empty());
  }
}

TEST_CASE("a volume whose deletion has failed is deleted, whatever the options ask, and made as they ask") {
  World world;
  world.fail_terminates = 5;  // a release gives up after 5
  auto script = [](Run& run, CppGuest&, World&) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      const Value small = Value().set("size", "10GB"), large = Value().set("size", "20GB");
      RILLE_CO_TRY(const VolumeView first, co_await run.volume(f, "data", small, "test"));
      const Result<VolumeView> differs = co_await run.volume(f, "data", large, "test");
      const Result<> deleted = co_await run.release(f, first.id, "test");
      RILLE_CO_TRY(const VolumeView second, co_await run.volume(f, "data", large, "test"));
      RILLE_CO_CHECK(co_await run.release(f, second.id, "test"));
      co_return Value().set("deleted", deleted.ok()).set("size", second.size_bytes).set("before", differs.error().code);
    };
  };
  const Result<Value> r = Process::settle(world, script, -1);
  if (!r) FAIL(r.error().summary());
  CHECK(r->to_json() == R"({"before":"volume_differs","deleted":false,"size":20000000000})");
}

TEST_CASE("a scope that could not end its machine leaves a volume, which the next that asks for its name deletes") {
  auto script = [](Run& run, CppGuest&, World&) -> CppGuest::Body {
    return [&](FiberId f) -> Async<Value> {
      const Value options = Value().set("size", "10GB").set("keep", false);
      const ScopeId scope = run.scope_enter(f, "s");
      RILLE_CO_TRY(const VolumeView first, co_await run.volume(f, "scratch", options, "test"));
      const Value with = Value().set("volumes", Value().set("data", first.id));
      RILLE_CO_TRY(const LeaseView box, co_await run.rent(f, "box", with, "test"));
      RILLE_CO_CHECK(co_await run.scope_settle(f, scope, std::nullopt));
      const Result<> ended = co_await run.scope_release(f, scope, {});
      run.scope_leave(f, scope);
      Result<VolumeView> second = co_await run.volume(f, "scratch", options, "test");
      std::string code;
      if (!second) {  // its machine cannot be ended yet
        code = second.error().code;
        second = co_await run.volume(f, "scratch", options, "test");
      }
      if (!second) co_return second.error();
      co_return Value().set("ended", ended.ok()).set("code", code).set("same", first.id == second->id);
    };
  };
  World calm;
  calm.fail_terminates = 10;  // a release gives up after 5
  const Result<Value> r = Process::settle(calm, script, -1);
  if (!r) FAIL(r.error().summary());
  CHECK(r->to_json() == R"({"code":"volume_busy","ended":false,"same":false})");
  CHECK(calm.machines.empty());
  // At two of the places the next process waits for a minute: they are under slow.
  for (int at = 1; at <= calm.places; at += std::getenv("RILLE_LONG") ? 1 : 3) {
    INFO("crash at place " << at);
    World world;
    world.fail_terminates = 10;
    const Result<Value> resumed = Process::settle(world, script, at);
    if (!resumed) FAIL(resumed.error().summary());
    CHECK(world.machines.empty());
  }
}
