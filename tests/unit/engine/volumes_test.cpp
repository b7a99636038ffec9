// rille.volume of a name whose deletion has failed.
#include <catch2/catch.hpp>

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
