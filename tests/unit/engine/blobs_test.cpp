// Large values of the record: files that a row never names before they are there, and that are checked.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "runtime/core/base/id.hpp"
#include "runtime/core/store/file.hpp"
#include "tests/unit/engine/steps_world.hpp"

using namespace rille;
using namespace rille::engine;
using namespace rille::engine::test;

namespace {

const std::string large(200'000, 'x');

// A small value, a large one, and a wait.
CppGuest::Body gives_large(Run& run, CppGuest&, StepWorld& world) {
  return [&run, &world](FiberId f) -> Async<Value> {
    StepCall small, big, end;
    small.name = "small";
    big.name = "big";
    end.name = "end";
    big.body = [](FiberId, const StepTicket&, int) -> Async<Value> { co_return Value(large); };
    RILLE_CO_CHECK(co_await run_step(run, world, f, small));
    RILLE_CO_TRY(Value v, co_await run_step(run, world, f, big));
    RILLE_CO_CHECK(co_await run_step(run, world, f, end));
    co_return Value(v.as_string() && *v.as_string() == large);
  };
}

std::vector<std::string> blob_names(StepWorld& world) {
  std::vector<std::string> names;
  REQUIRE(world.disk->query("SELECT blob FROM entries WHERE blob IS NOT NULL", {},
                            [&](const store::Row& row) { names.push_back(row.text(0)); }));
  return names;
}

}  // namespace

TEST_CASE("a large value is a file before its row is there, whatever two crashes do") {
  crash_twice_everywhere(gives_large, [](StepWorld& w, const Result<Value>& r) {
    REQUIRE(r.ok());
    CHECK(*r->as_bool());
    CHECK(w.begun["main/big#1"] <= w.processes);
    REQUIRE(blob_names(w).size() == 1);
  });
  StepWorld world;
  store::Blobs blobs(world.dir.path + "/blobs");
  for (int at = 1;; ++at) {  // die at each place, and look at the disk there
    StepWorld w;
    w.crash_at = {at};
    store::Blobs there(w.dir.path + "/blobs");
    bool ended = run_process(w, gives_large).has_value();
    for (const std::string& name : blob_names(w)) CHECK(there.get(name).ok());
    if (ended) break;
  }
}

TEST_CASE("a large value that was damaged or lost stops the resume, and names the file") {
  for (const char* how : {"changed", "shortened", "lost"}) {
    StepWorld world;
    while (blob_names(world).empty()) {  // until a process dies after the large one
      StepWorld* w = &world;
      w->crash_at = {w->places + 7};
      if (run_process(world, gives_large)) break;
    }
    REQUIRE(blob_names(world).size() == 1);
    world.crash_at.clear();
    std::string file = store::Blobs(world.dir.path + "/blobs").path(blob_names(world)[0]);
    REQUIRE(std::filesystem::exists(file));
    if (how == std::string("lost")) std::filesystem::remove(file);
    else if (how == std::string("shortened")) std::filesystem::resize_file(file, 1000);
    else REQUIRE(store::write_file_atomic(file, std::string(200'002, 'y')).ok());
    std::optional<Result<Value>> out = run_process(world, gives_large);
    REQUIRE(out);
    REQUIRE_FALSE(out->ok());
    CHECK(out->error().kind == ErrorKind::integrity);
    CHECK_THAT(out->error().message, Catch::Contains(file));
  }
}

TEST_CASE("a value that is too large is refused, and a disk without room stops the run") {
  StepWorld world;
  StepScript script = [](Run& run, CppGuest&, StepWorld& w) -> CppGuest::Body {
    return [&run, &w](FiberId f) -> Async<Value> {
      StepCall huge;
      huge.name = "huge";
      huge.body = [](FiberId, const StepTicket&, int) -> Async<Value> {
        co_return Value(std::string((64 << 20) + 1, 'x'));
      };
      co_return co_await run_step(run, w, f, huge);
    };
  };
  Result<Value> r = run_to_end(world, script);
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == ErrorKind::invalid);
  CHECK(r.error().message == "the result of step 'huge' is 64 MB; at most 64 MB are kept");
  StepWorld full;
  std::ofstream(full.dir.path + "/blobs") << "not a folder";
  std::optional<Result<Value>> refused = run_process(full, gives_large);
  REQUIRE(refused);
  REQUIRE_FALSE(refused->ok());
  CHECK(refused->error().kind == ErrorKind::io);
  CHECK(refused->error().code == "run_paused");
  CHECK_THAT(refused->error().message, Catch::Contains("/blobs"));
  std::filesystem::remove(full.dir.path + "/blobs");
  REQUIRE(run_to_end(full, gives_large).ok());
  CHECK(full.begun["main/small#1"] == 1);
}
