// A lease's machine becomes another type: what is in the journal, what it costs, and what becomes of it when the
// process dies at any place.
#include "runtime/core/base/units.hpp"
#include "tests/unit/lease/cloud.hpp"

using namespace rille;
using namespace rille::lease;
using namespace rille::lease::test;

namespace {

Value large() { return Value().set("type", "large"); }

// A lease with a small machine that has lived for half an hour.
Lease rented(World& w, Value options = Value().set("ttl", "10h")) {
  w.cloud.pass = [&w](std::int64_t us) { w.clock.us += us; };
  auto r = w.rent(w.wanted("r", "box", std::move(options)));
  REQUIRE(r);
  if (!*r) FAIL((*r).error().summary());
  w.clock.us += hour_us / 2;
  return w.row((*r)->id);
}

// What must be true of a lease that is at rest.
void check_rest(World& w, const Lease& row, const std::string& type) {
  CHECK(row.state == "live");
  CHECK_FALSE(row.change);
  CHECK(row.request.offer.id == type);
  CHECK(row.price_micros_per_hour == w.cloud.price_of(type));
  CHECK(w.cloud.boxes.at(row.machine_id).type == type);
  CHECK_FALSE(w.cloud.boxes.at(row.machine_id).stopped);
  CHECK(row.spent_micros(w.clock.us) >= w.cloud.bill(row.machine_id, w.clock.us));
  CHECK(row.reserved_micros >= row.spent_micros(row.expires_us));
}

void check_end(World& w, const Lease& row) {
  w.clock.us += hour_us;
  REQUIRE(w.release(row.id)->ok());
  const Lease over = w.row(row.id);
  CHECK(over.tenures.size() == 1);
  CHECK(over.spent_micros(0) >= w.cloud.bill(row.machine_id, w.clock.us));
  CHECK(w.billable() == 0);
}

}  // namespace

TEST_CASE("a resized machine costs the new price, and both while it changed") {
  World w;
  w.run("r");
  const Lease before = rented(w);
  const std::int64_t asked_us = w.clock.us;
  auto r = w.resize(before.id, large());
  REQUIRE(r);
  if (!*r) FAIL((*r).error().summary());
  Lease row = w.row(before.id);
  check_rest(w, row, "large");
  CHECK(row.generation == 1);
  CHECK(row.machine_id == before.machine_id);
  CHECK(row.expires_us == before.expires_us);
  REQUIRE(row.tenures.size() == 1);
  const Tenure& t = row.tenures[0];
  REQUIRE(t.segments.size() == 2);
  REQUIRE(t.restarts.size() == 1);
  CHECK(t.segments[1].from_us == asked_us);
  CHECK(t.segments[0].to_us == w.clock.us);
  const std::int64_t changed_us = w.clock.us;
  w.clock.us += hour_us;
  CHECK(w.row(row.id).spent_micros(w.clock.us) == cost_micros(1'000'000, (changed_us - t.from_us) / 1000) +
                                                      cost_micros(2'000'000, (w.clock.us - asked_us) / 1000));
  check_end(w, row);
}

TEST_CASE("if the provider reports the restart, the old price ends and the new one begins at that time") {
  World w;
  w.run("r");
  w.cloud.tells_running = true;
  const Lease before = rented(w);
  w.clock.us += 400'000;
  const std::int64_t asked_us = w.clock.us;
  REQUIRE(w.resize(before.id, large())->ok());
  const Lease row = w.row(before.id);
  check_rest(w, row, "large");
  const std::int64_t again_us = w.cloud.boxes.at(row.machine_id).stints.back().from_us;
  REQUIRE(again_us == asked_us + 20 * second_us);
  const std::vector<Segment> segments = row.tenures[0].segments;
  REQUIRE(segments.size() == 2);
  CHECK((segments[1].from_us <= again_us && segments[1].from_us > again_us - second_us));
  CHECK((segments[0].to_us >= again_us && segments[0].to_us <= again_us + second_us));
  check_end(w, row);
}

TEST_CASE("a machine that becomes another type is counted in the currency of each") {
  World w;
  w.run("r");
  w.cloud.currency = "CNY";
  const Lease before = rented(w);
  REQUIRE(w.resize(before.id, large())->ok());
  Lease row = w.row(before.id);
  CHECK(row.price().shown() == "2.00 CNY");
  CHECK(row.costs(w.clock.us).count("USD") == 0);
  REQUIRE(w.resize(before.id, Value().set("type", "small").set("price", 0.5))->ok());
  row = w.row(before.id);
  CHECK(row.price().shown() == "$0.50");
  w.clock.us += hour_us;
  const Amounts costs = w.row(before.id).costs(w.clock.us);
  CHECK(costs.at("CNY") > 0);
  CHECK(costs.at("USD") >= 500'000);
}

TEST_CASE("a machine that fits already stays as it is, and a smaller one costs less from then on") {
  World w;
  w.run("r");
  const Lease before = rented(w);
  REQUIRE(w.resize(before.id, Value().set("type", "small"))->ok());
  CHECK(w.cloud.resizes == 0);
  REQUIRE(w.resize(before.id, large())->ok());
  REQUIRE(w.resize(before.id, large())->ok());
  CHECK(w.cloud.resizes == 1);
  REQUIRE(w.resize(before.id, Value().set("type", "small"))->ok());
  const Lease row = w.row(before.id);
  check_rest(w, row, "small");
  CHECK(row.tenures[0].restarts.size() == 2);
  check_end(w, row);
}

TEST_CASE("each type is billed by its own units and minimum") {
  for (const auto& [unit_s, minimum_s] : {std::pair(3600, 0), std::pair(1, 7200), std::pair(60, 600)}) {
    World w;
    w.cloud.billing.unit_s = unit_s;
    w.cloud.billing.minimum_s = minimum_s;
    w.run("r");
    const Lease before = rented(w);
    REQUIRE(w.resize(before.id, large())->ok());
    const Lease row = w.row(before.id);
    check_rest(w, row, "large");
    if (unit_s != 60)  // the time that it took begins no unit
      CHECK(row.spent_micros(w.clock.us) == w.cloud.bill(row.machine_id, w.clock.us));
    check_end(w, row);
  }
}

TEST_CASE("a type that is not there is named with the number of its GPUs") {
  World w;
  w.run("r");
  const Lease before = rented(w);
  for (const Value& asked : {Value().set("gpu", "H100:8"), Value().set("gpu", "H100").set("count", 8)}) {
    auto r = w.resize(before.id, asked);
    REQUIRE(r);
    REQUIRE_FALSE(*r);
    CHECK_THAT((*r).error().message, Catch::Contains("has no type for gpu = \"H100:8\" in"));
  }
}

TEST_CASE("a type with a GPU that this build cannot use is refused, unless the rent said cuda = false") {
  for (const bool cuda : {true, false}) {
    World w;
    w.run("r");
    w.cloud.large_gpu = "H100";
    w.manager->queries().set_gpu_use([](const GpuAsked& asked) -> std::optional<Error> {
      return make_error(ErrorKind::config, "no kernels for a " + asked.model);
    });
    const Lease before = rented(w, Value().set("ttl", "10h").set("cuda", cuda));
    for (const Value& asked : {Value().set("gpu", "H100"), Value().set("type", "large")}) {
      auto r = w.resize(before.id, asked);
      REQUIRE(r);
      CHECK(r->ok() == !cuda);
      check_rest(w, w.row(before.id), cuda ? "small" : "large");
      if (cuda) CHECK((*r).error().message == "no kernels for a H100");
    }
    CHECK(w.cloud.resizes == (cuda ? 0 : 1));
    check_end(w, w.row(before.id));
  }
}

TEST_CASE("a refused resize leaves the machine, its ledger and its reservation as they were") {
  World w;
  w.run("r", "running", 100'000'000);
  const Lease before = rented(w);
  w.cloud.refuse_resizes = 1;
  auto r = w.resize(before.id, large());
  REQUIRE(r);
  REQUIRE_FALSE(*r);
  CHECK((*r).error().kind == ErrorKind::capacity);
  const Lease row = w.row(before.id);
  check_rest(w, row, "small");
  CHECK(row.tenures[0].segments.size() == 1);
  CHECK(row.tenures[0].restarts.empty());
  CHECK(row.reserved_micros == before.reserved_micros);
  check_end(w, row);
}

TEST_CASE("what would cost more than is left is refused before the provider is asked; less always fits") {
  World w;
  w.run("r", "running", 15'000'000);
  const Lease before = rented(w);
  auto r = w.resize(before.id, large());
  REQUIRE(r);
  REQUIRE_FALSE(*r);
  CHECK((*r).error().kind == ErrorKind::budget);
  CHECK((*r).error().code == "run");
  CHECK(w.cloud.resizes == 0);
  check_rest(w, w.row(before.id), "small");
  w.sql("UPDATE runs SET budget_micros=25000000 WHERE id='r'");
  REQUIRE(w.resize(before.id, large())->ok());
  CHECK(w.row(before.id).reserved_micros <= 25'000'000);
  w.sql("UPDATE runs SET budget_micros=1000000 WHERE id='r'");
  REQUIRE(w.resize(before.id, Value().set("type", "small"))->ok());
  check_rest(w, w.row(before.id), "small");
}

TEST_CASE("a type above max_price, of the rent or of the resize, is not chosen") {
  World w;
  w.run("r");
  const Lease before = rented(w, Value().set("ttl", "10h").set("max_price", 1.5));
  auto r = w.resize(before.id, large());
  REQUIRE_FALSE(*r);
  CHECK((*r).error().kind == ErrorKind::capacity);
  CHECK((*r).error().message.find("max_price = $1.50") != std::string::npos);
  CHECK(w.cloud.boxes.at(before.machine_id).type == "small");
  REQUIRE(w.resize(before.id, large().set("max_price", 2.5))->ok());
  const Lease row = w.row(before.id);
  check_rest(w, row, "large");
  CHECK(row.options.number("max_price") == 2.5);  // also of a machine in its place
}

TEST_CASE("a provider without resize says so, and options are checked") {
  World w;
  w.run("r");
  const Lease before = rented(w);
  CHECK((*w.resize(before.id, Value().set("typ", "large"))).error().hint == "did you mean type?");
  CHECK((*w.resize(before.id, Value().set("max_price", 2))).error().kind == ErrorKind::invalid);
  w.cloud.resizable = false;
  for (const char* type : {"large", "huge"}) {  // whether or not there is such an offer
    auto r = w.resize(before.id, Value().set("type", type));
    REQUIRE_FALSE(*r);
    CHECK(provider::is_lack((*r).error()));
    check_rest(w, w.row(before.id), "small");
  }
}

TEST_CASE("a lost answer is asked for again; a machine that stands still is started as it was") {
  World w;
  w.run("r");
  const Lease before = rented(w);
  w.cloud.lose_resizes = 3;
  REQUIRE(w.resize(before.id, large())->ok());
  check_rest(w, w.row(before.id), "large");

  w.cloud.strand_resizes = 5;  // as often as it is tried
  auto r = w.resize(before.id, Value().set("type", "small"));
  REQUIRE_FALSE(*r);
  CHECK((*r).error().kind == ErrorKind::network);
  check_rest(w, w.row(before.id), "large");
  check_end(w, w.row(before.id));
}

TEST_CASE("what cannot be settled stays in the row, says so, and is settled by the next use") {
  World w;
  w.run("r");
  const Lease before = rented(w);
  w.cloud.strand_resizes = 100;
  auto r = w.resize(before.id, large());
  REQUIRE_FALSE(*r);
  CHECK((*r).error().kind == ErrorKind::state);
  Lease row = w.row(before.id);
  CHECK(row.state == "resizing");
  CHECK(row.error.find("the machine's present type is not known") != std::string::npos);
  CHECK(row.to_value(w.clock.us).text("becomes") == "large");
  CHECK(row.spent_micros(w.clock.us) >= w.cloud.bill(row.machine_id, w.clock.us));
  w.cloud.strand_resizes = 0;
  REQUIRE(w.resize(before.id, Value())->ok());  // for any later use
  check_rest(w, w.row(before.id), "large");
  check_end(w, w.row(before.id));
}

TEST_CASE("a machine that disappears during a resize is reported gone, and its lease can be replaced or released") {
  World w;
  w.run("r");
  const Lease before = rented(w);
  w.cloud.boxes[before.machine_id].gone_us = w.clock.us;
  auto r = w.resize(before.id, large());
  REQUIRE_FALSE(*r);
  CHECK((*r).error().code == "machine_lost");
  CHECK(w.row(before.id).state == "live");
  CHECK(w.row(before.id).tenures[0].segments.size() == 1);
  REQUIRE(w.release(before.id)->ok());
}

TEST_CASE("a machine that disappears after its type has changed unnoticed is booked at both prices") {
  World w;
  w.run("r");
  const Lease before = rented(w);
  w.cloud.lose_resizes = 1;
  w.cloud.pass = [&](std::int64_t us) {
    w.clock.us += us;
    if (us != 10 * second_us) return;
    w.clock.us += hour_us;  // as the large one
    w.cloud.boxes.at(before.machine_id).gone_us = w.clock.us + 1;
  };
  auto r = w.resize(before.id, large());
  REQUIRE(r);
  REQUIRE_FALSE(*r);
  CHECK((*r).error().code == "machine_lost");
  const Lease row = w.row(before.id);
  CHECK(row.state == "live");
  CHECK_FALSE(row.change);
  CHECK(row.spent_micros(w.clock.us) >= w.cloud.bill(row.machine_id, w.clock.us));
  CHECK(row.reserved_micros > before.reserved_micros);
  check_end(w, row);
}

TEST_CASE("the process dies at each place, and its machine ends before the next one comes: the ledger holds the bill") {
  int became = 0;
  for (int nth = 1;; ++nth) {
    INFO("place " << nth);
    World w;
    w.run("r", "running", 1'000'000'000);
    const Lease before = rented(w);
    w.die_at = w.places + nth;
    const bool over = w.resize(before.id, large()).has_value();
    w.die_at = -1;
    if (over) break;
    Cloud::Box& box = w.cloud.boxes.at(before.machine_id);
    became += box.type == "large";
    w.clock.us += hour_us;
    box.gone_us = w.clock.us;
    w.clock.us += 90 * second_us;
    w.restart();
    w.sql("UPDATE runs SET epoch=2 WHERE id='r'");
    (void)w.resize(before.id, Value(), 2);
    const Lease row = w.row(before.id);
    CHECK(row.state == "live");
    CHECK(row.spent_micros(w.clock.us) >= w.cloud.bill(row.machine_id, w.clock.us));
    CHECK(row.committed_micros(w.clock.us) >= row.spent_micros(w.clock.us));
    check_end(w, row);
  }
  CHECK(became >= 2);
}

TEST_CASE("the process dies at each place of a resize: the next one finishes it, and the books are right") {
  int places = 0;
  for (int nth = 1;; ++nth) {
    INFO("place " << nth);
    World w;
    w.cloud.traits.visibility_lag_ms = 1'000;
    w.run("r", "running", 1'000'000'000);
    const Lease before = rented(w);
    w.die_at = w.places + nth;
    const bool over = w.resize(before.id, large()).has_value();
    w.die_at = -1;
    if (over) break;
    ++places;
    w.restart();
    w.sql("UPDATE runs SET epoch=2 WHERE id='r'");
    w.clock.us += 90 * second_us;
    const Lease left = w.row(before.id);
    CHECK(left.spent_micros(w.clock.us) >= w.cloud.bill(left.machine_id, w.clock.us));
    CHECK(left.committed_micros(w.clock.us) >= left.spent_micros(w.clock.us));
    auto r = w.resize(before.id, large(), 2);
    REQUIRE(r);
    if (!*r) FAIL((*r).error().summary());
    check_rest(w, w.row(before.id), "large");
    check_end(w, w.row(before.id));
    CHECK(w.cloud.made.size() == 1);
  }
  CHECK(places >= 5);
}

TEST_CASE("the process dies at each place and is not resumed: its machine ends with the lease") {
  for (int nth = 1;; ++nth) {
    INFO("place " << nth);
    World w;
    w.run("r");
    const Lease before = rented(w);
    w.die_at = w.places + nth;
    const bool over = w.resize(before.id, large()).has_value();
    w.die_at = -1;
    if (over) break;
    w.restart();
    w.clock.us = before.expires_us + second_us;
    REQUIRE(w.reap()->ok());
    const Lease row = w.row(before.id);
    CHECK(row.state == "released");
    CHECK(w.billable() == 0);
    CHECK(row.spent_micros(w.clock.us) >= w.cloud.bill(row.machine_id, w.clock.us));
  }
}

TEST_CASE("released while it changes: the machine ends, and the resize has lost") {
  World w;
  w.run("r");
  const Lease before = rented(w);
  Resize wanted;
  wanted.id = before.id;
  wanted.options = large();
  wanted.fence = store::Fence("r", 1);
  Manager::Event quiet = [](const std::string&, Value) {};
  w.drive_both(w.manager->resize(wanted, quiet, {}), w.manager->release(before.id, quiet));
  CHECK(w.row(before.id).state == "released");
  CHECK(w.billable() == 0);
}

TEST_CASE("a resize during a resize gets its own type, not the earlier one") {
  World w;
  w.run("r");
  const Lease before = rented(w);
  w.cloud.strand_resizes = 100;
  REQUIRE_FALSE(*w.resize(before.id, large()));
  REQUIRE(w.row(before.id).state == "resizing");
  w.cloud.strand_resizes = 0;
  REQUIRE(w.resize(before.id, Value().set("type", "small"))->ok());
  check_rest(w, w.row(before.id), "small");
  CHECK(w.row(before.id).tenures[0].restarts.size() == 2);
  auto r = w.resize(before.id, Value().set("typ", "large"));
  REQUIRE_FALSE(*r);
  check_end(w, w.row(before.id));
}

TEST_CASE("a detach while the type is looked for holds") {
  World w;
  w.run("r");
  const Lease before = rented(w);
  w.cloud.before_offers = [&]() -> Async<> {
    w.cloud.before_offers = nullptr;
    RILLE_CO_CHECK(co_await w.manager->detach(before.id, hour_us / 1000, store::Fence("r", 1)));
    co_return success();
  };
  const std::int64_t until_us = w.clock.us + hour_us;
  REQUIRE(w.resize(before.id, large())->ok());
  const Lease row = w.row(before.id);
  CHECK(row.detached);
  CHECK(row.expires_us == until_us);
  check_rest(w, row, "large");
  check_end(w, row);
}

TEST_CASE("what begins to run there while the type is looked for is not ended") {
  World w;
  w.run("r");
  const Lease before = rented(w);
  bool used = false;
  w.cloud.before_offers = [&]() -> Async<> {
    used = true;
    co_return success();
  };
  Resize wanted;
  wanted.id = before.id;
  wanted.options = large();
  wanted.fence = store::Fence("r", 1);
  wanted.may = [&]() -> Result<> {
    if (used) return make_error(ErrorKind::state, "something runs there");
    return {};
  };
  Manager::Event quiet = [](const std::string&, Value) {};
  auto r = w.drive(w.manager->resize(wanted, quiet, {}));
  REQUIRE(r);
  REQUIRE_FALSE(*r);
  CHECK((*r).error().message == "something runs there");
  CHECK(w.cloud.resizes == 0);
  check_rest(w, w.row(before.id), "small");
  CHECK(w.row(before.id).tenures[0].segments.size() == 1);
}
