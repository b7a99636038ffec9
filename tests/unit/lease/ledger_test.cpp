// What leases cost, to the micro-dollar, and what may be spent.
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/lease/budget.hpp"
#include "runtime/workflow/lease/parts.hpp"
#include "tests/unit/lease/cloud.hpp"
#include "tests/unit/lease/seller.hpp"

using namespace rille;
using namespace rille::lease;
using namespace rille::lease::test;

namespace {

Tenure machine(Micros price, std::int64_t seconds, provider::Billing billing = {}) {
  Tenure t;
  t.billing = billing;
  t.from_us = 1'800'000'000 * second_us;
  t.to_us = t.from_us + seconds * second_us;
  t.segments.push_back({"machine", t.from_us, t.to_us, price, {}});
  return t;
}

provider::Billing by(std::int64_t unit_s, std::int64_t minimum_s = 0, Micros minimum_micros = 0) {
  provider::Billing b;
  b.unit_s = unit_s;
  b.minimum_s = minimum_s;
  b.minimum_micros = minimum_micros;
  return b;
}

Lease rented_row(World& w, const std::string& name, Value options) {
  auto r = w.rent(w.wanted("r", name, std::move(options)));
  REQUIRE(r);
  if (!*r) FAIL((*r).error().summary());
  return w.row((*r)->id);
}

Error refused(World& w, const std::string& name, Value options) {
  auto r = w.rent(w.wanted("r", name, std::move(options)));
  REQUIRE(r);
  REQUIRE_FALSE(r->ok());
  return r->error();
}

}  // namespace

TEST_CASE("time is charged in started units, at least the minimum") {
  CHECK(machine(3'600'000, 90).cost(0) == 90'000);
  CHECK(machine(3'600'000, 90, by(60)).cost(0) == 120'000);
  CHECK(machine(3'600'000, 90, by(3600)).cost(0) == 3'600'000);
  CHECK(machine(3'600'000, 3601, by(3600)).cost(0) == 7'200'000);
  CHECK(machine(3'600'000, 5, by(1, 60)).cost(0) == 60'000);
  CHECK(machine(3'600'000, 5, by(1, 0, 250'000)).cost(0) == 250'000);
  CHECK(machine(1, 1).cost(0) == 1);  // never less than what was used
}

TEST_CASE("provisioning is free where the offer says so") {
  provider::Billing b;
  b.from_live = true;
  Tenure t = machine(3'600'000, 100, b);
  CHECK(t.cost(0) == 100'000);  // the start of its running time is not reported: the longest possible time
  t.ready_us = t.from_us + 40 * second_us;
  CHECK(t.cost(0) == 100'000);  // it may have cost before it could be used
  t.segments[0].from_us = t.from_us + 30 * second_us;
  CHECK(t.cost(0) == 70'000);
  t.busy_us = 50 * second_us;
  CHECK(t.starting_us(0) == 40 * second_us);
  CHECK(t.idle_us(0) == 10 * second_us);
}

TEST_CASE("each price counts for its own time, and the last one for the rest of the unit") {
  Tenure t = machine(3'600'000, 90, by(60));
  t.segments[0].to_us = t.from_us + 30 * second_us;
  t.segments.push_back({"machine", t.segments[0].to_us, t.to_us, 7'200'000, {}});
  t.segments.push_back({"disk", t.from_us, t.to_us, 360'000, {}});
  t.segments.push_back({"address", t.from_us - 10 * second_us, t.to_us, 36'000, {}});
  CHECK(t.cost(0) == 30'000 + 60 * 2'000 + 30 * 2'000 + 9'000 + 1'000);
  CHECK(t.to_value(0).integer("machine_micros") == 30'000 + 60 * 2'000 + 30 * 2'000);
  CHECK(t.to_value(0).integer("disk_micros") == 9'000);
  CHECK(t.to_value(0).integer("address_micros") == 1'000);
}

TEST_CASE("the months of a machine share its cost without losing a micro-dollar") {
  Tenure t = machine(1'000'003, 100 * 86'400);
  t.segments.push_back({"disk", t.from_us, t.to_us, 1'000'003, {}});
  t.disk_currency = "CNY";
  Amounts sum;
  auto months = by_month(t, 0);
  CHECK(months.size() == 4);
  CHECK(months.front().first == "2027-01");
  for (const auto& [month, amounts] : months) add_to(sum, amounts);
  CHECK(sum == t.costs(0));
  CHECK(sum["USD"] == t.cost(0));
  CHECK(sum["CNY"] == t.cost(0));
}

TEST_CASE("a machine is in the ledger from its creation to its end, and a moved price begins a segment") {
  World w;
  w.run("r");
  Lease l = rented_row(w, "box", Value().set("ttl", "10h"));
  REQUIRE(l.tenures.size() == 1);
  CHECK(l.tenures[0].machine_id == l.machine_id);
  std::int64_t from = l.tenures[0].from_us;
  w.clock.us += hour_us;
  CHECK(w.row(l.id).spent_micros(w.clock.us) == cost_micros(1'000'000, (w.clock.us - from) / 1000));
  store::Journal::Write move = [&](store::Db& db) { return record_prices(db, l, {{w.clock.us, 3'000'000}}, false); };
  REQUIRE(run_blocking(*w.loop, w.journal->commit(move)));
  std::int64_t moved = w.clock.us;
  w.clock.us += hour_us;
  REQUIRE(w.release(l.id)->ok());
  Lease over = w.row(l.id);
  REQUIRE(over.tenures[0].segments.size() == 2);
  CHECK(over.tenures[0].to_us == over.released_us);
  CHECK(over.spent_micros(0) ==
        cost_micros(1'000'000, (moved - from) / 1000) + cost_micros(3'000'000, (over.released_us - moved) / 1000));
}

TEST_CASE("a market that knows what was before says what each part of a machine's time has cost") {
  World w;
  w.run("r");
  const Lease l = rented_row(w, "box", Value().set("ttl", "10h"));
  const std::int64_t from = l.tenures[0].from_us;
  const auto book = [&](std::vector<PriceStep> steps, bool whole) {
    store::Journal::Write write = [&](store::Db& db) { return record_prices(db, l, steps, whole); };
    REQUIRE(run_blocking(*w.loop, w.journal->commit(write)));
  };
  const auto prices = [&] {
    std::vector<std::pair<std::int64_t, Micros>> out;
    const Lease now = w.row(l.id);
    for (const Segment& s : now.tenures[0].segments) out.emplace_back((s.from_us - from) / hour_us, s.micros_per_hour);
    CHECK(now.price_micros_per_hour == out.back().second);
    return out;
  };
  using All = std::vector<std::pair<std::int64_t, Micros>>;
  w.clock.us = from + 5 * hour_us;
  book({{from - hour_us, 500'000}, {from + hour_us, 2'000'000}, {from + 3 * hour_us, 2'000'000}}, true);
  CHECK(prices() == All{{0, 500'000}, {1, 2'000'000}});
  CHECK(w.row(l.id).spent_micros(w.clock.us) == 500'000 + 4 * 2'000'000);
  const Value before = w.row(l.id).to_value(0);
  book({{from - hour_us, 500'000}, {from + hour_us, 2'000'000}}, true);
  CHECK(w.row(l.id).to_value(0) == before);
  // What goes less far back leaves what was; what was only seen now counts from now on.
  book({{from + 2 * hour_us, 3'000'000}}, true);
  CHECK(prices() == All{{0, 500'000}, {1, 2'000'000}, {2, 3'000'000}});
  book({{from + hour_us, 9'000'000}, {from + 4 * hour_us, 1'000'000}}, false);
  CHECK(prices() == All{{0, 500'000}, {1, 2'000'000}, {2, 3'000'000}, {4, 1'000'000}});
  CHECK(w.row(l.id).spent_micros(w.clock.us) == 500'000 + 2'000'000 + 2 * 3'000'000 + 1'000'000);
  REQUIRE(w.release(l.id)->ok());
  const Micros cost = w.row(l.id).spent_micros(0);
  book({{from, 7'000'000}}, true);
  CHECK(w.row(l.id).spent_micros(0) == cost);  // it is over
}

TEST_CASE("the provider's bill replaces the estimate") {
  World w;
  w.run("r");
  Lease l = rented_row(w, "box", Value().set("ttl", "1h"));
  w.cloud.bills[l.machine_id] = 1'234'567;
  CHECK(**w.drive(w.manager->reconcile({})) == 0);  // it is not over
  REQUIRE(w.release(l.id)->ok());
  CHECK_FALSE(w.row(l.id).tenures[0].reconciled());
  CHECK(**w.drive(w.manager->reconcile({})) == 1);
  CHECK(w.row(l.id).tenures[0].reconciled());
  CHECK(w.row(l.id).spent_micros(w.clock.us) == 1'234'567);
  CHECK(**w.drive(w.manager->reconcile({})) == 0);  // once
}

TEST_CASE("a reservation counts the cap of a spot price, the disk, whole units and the teardown") {
  World w;
  w.run("r", "running", 100'000'000);
  w.cloud.traits.teardown_ms = 60'000;
  w.cloud.spot = true;
  w.cloud.disk_bytes_max = 1'000'000'000'000;
  w.cloud.disk_micros_per_gb_hour = 1'000;
  w.cloud.billing.unit_s = 3600;
  Lease l = rented_row(w, "box", Value().set("spot", true).set("ttl", "2h").set("max_price", 1.5).set("disk", "100GB"));
  // Two hours and a minute are three units at the cap, which is what the disk leaves of the most.
  CHECK(l.reserved_micros == 3 * 1'400'000 + cost_micros(100'000, 2 * 3'600'000 + 60'000));
  CHECK(l.disk_micros_per_hour == 100'000);
  CHECK(l.request.disk_bytes == 100'000'000'000);
  Error e = refused(w, "vast", Value().set("disk", "2000GB"));
  CHECK(e.kind == ErrorKind::capacity);
  CHECK_THAT(e.message, Catch::Contains("with such a disk"));
}

TEST_CASE("under a budget a disk's price needs a rate, too") {
  World w;
  w.run("r", "running", 100'000'000);
  w.cloud.currency = "CNY";
  w.cloud.disk_bytes_max = 1'000'000'000'000;
  w.cloud.disk_micros_per_gb_hour = 1'000;
  Error e = refused(w, "box", Value().set("disk", "100GB").set("price", 1.5));
  CHECK(e.kind == ErrorKind::budget);
  CHECK_THAT(e.message, Catch::Contains("the price of its disk is in CNY, which is not converted"));
  CHECK_THAT(e.hint, Catch::StartsWith("say rates = { CNY = dollars for one }"));
  Lease l = rented_row(w, "box", Value().set("disk", "100GB").set("price", 1.5).set("rates", Value().set("CNY", 0.1)));
  CHECK(l.disk_micros_per_hour == 10'000);
  w.cloud.currency = "USD";
  w.cloud.disk_micros_per_gb_hour = 0;
  e = refused(w, "big", Value().set("disk", "100GB"));
  CHECK_THAT(e.message, Catch::Contains("the price of its disk is not known"));
  CHECK_THAT(e.hint, Catch::Contains("\"disk_price\": {\"cloud\": 0.08}"));
  World free;  // no budget: nothing to hold it against
  free.run("r");
  free.cloud.currency = "CNY";
  free.cloud.disk_bytes_max = 1'000'000'000'000;
  free.cloud.disk_micros_per_gb_hour = 1'000;
  Lease unknown = rented_row(free, "box", Value().set("disk", "100GB").set("price", 1.5).set("ttl", "1h"));
  CHECK(unknown.disk_micros_per_hour == provider::price_unknown);
  CHECK(unknown.reserved_micros == 1'500'000);
}

TEST_CASE("a disk of unknown price leaves the cost not known in full") {
  World w;
  w.run("r");
  w.cloud.disk_bytes_max = 1'000'000'000'000;
  CHECK(rented_row(w, "box", Value().set("disk", "100GB")).tenures[0].unknown());
  CHECK_FALSE(rented_row(w, "plain", Value(Value::Object{})).tenures[0].unknown());
}

TEST_CASE("a public address is reserved and booked, and one of unknown price is like such a disk") {
  World w;
  w.run("r", "running", 100'000'000);
  w.cloud.address_micros_per_hour = 5'000;
  Lease l = rented_row(w, "box", Value().set("ttl", "2h"));
  CHECK(l.reserved_micros == 2 * 1'000'000 + 2 * 5'000);
  CHECK(l.to_value(w.clock.us).number("address_price_per_hour") == 0.005);
  w.clock.us = l.created_us + 2 * hour_us;
  CHECK(w.row(l.id).tenures[0].to_value(w.clock.us).integer("address_micros") == 10'000);
  CHECK(w.row(l.id).spent_micros(w.clock.us) == 2'000'000 + 10'000);
  w.cloud.address_micros_per_hour = 0;  // none is given: nothing to pay for
  CHECK(rented_row(w, "inside", Value().set("ttl", "2h")).tenures[0].segments.size() == 1);
  w.cloud.address_micros_per_hour = provider::price_unknown;
  const Error e = refused(w, "more", Value().set("ttl", "2h"));
  CHECK(e.kind == ErrorKind::budget);
  CHECK_THAT(e.message, Catch::Contains("the price of its public address is not known"));
  CHECK_THAT(e.hint, Catch::Contains("\"address_price\": {\"cloud\": 0.005}"));
  w.sql("UPDATE runs SET budget_micros=NULL");
  CHECK(rented_row(w, "bold", Value().set("ttl", "2h")).tenures[0].unknown());
}

TEST_CASE("a machine that ended while no process looked costs until its end, if the end is known") {
  World w;
  w.run("r");
  w.cloud.traits.teardown_ms = 60'000;
  const bool told = GENERATE(true, false);
  w.cloud.tells_end = told;
  w.cloud.forgets = !told;
  Lease l = rented_row(w, "box", Value().set("ttl", "2h"));
  const std::int64_t from_us = l.tenures[0].from_us;
  w.cloud.boxes[l.machine_id].gone_us = from_us + hour_us;  // a person has ended it
  w.clock.us += 50 * hour_us;
  REQUIRE(w.release(l.id)->ok());
  const Value cost = w.row(l.id).tenures[0].to_value(w.clock.us);
  // Else its own switch has ended it at the latest.
  const std::int64_t until_us = told ? from_us + hour_us : l.expires_us + 60 * second_us;
  CHECK(cost.integer("machine_micros") == cost_micros(1'000'000, (until_us - from_us) / 1000));
}

TEST_CASE("a machine that its switch should have ended, and that is there, costs until it is gone") {
  World w;
  w.run("r");
  Lease l = rented_row(w, "box", Value().set("ttl", "2h"));
  w.clock.us = l.tenures[0].from_us + 50 * hour_us;
  w.cloud.shutdown_us = 10 * second_us;
  REQUIRE(w.release(l.id)->ok());
  CHECK(w.row(l.id).tenures[0].to_us >= l.tenures[0].from_us + 50 * hour_us + 10 * second_us);
}

TEST_CASE("what is waited for as a proof that a machine is gone is not counted") {
  World w;
  w.run("r");
  w.cloud.traits.visibility_lag_ms = 60'000;
  Lease l = rented_row(w, "box", Value().set("ttl", "2h"));
  w.cloud.boxes[l.machine_id].shown_us = l.created_us;
  w.clock.us += 10 * second_us;
  const std::int64_t before_us = w.clock.us;
  REQUIRE(w.release(l.id)->ok());
  const Lease over = w.row(l.id);
  REQUIRE(over.released_us >= before_us + 30 * second_us);  // it was not believed before that
  CHECK(over.tenures[0].to_us < before_us + 10 * second_us);
}

TEST_CASE("a disk that outlives its machine costs on alone") {
  World w;
  w.run("r");
  w.cloud.disk_bytes_max = 1'000'000'000'000;
  w.cloud.disk_micros_per_gb_hour = 1'000;
  Lease l = rented_row(w, "box", Value().set("ttl", "2h").set("disk", "100GB"));
  w.clock.us += 600 * second_us;
  const std::int64_t end_us = w.clock.us;
  w.cloud.disks[l.machine_id] = end_us + 60 * second_us;
  REQUIRE(w.release(l.id)->ok());
  const Tenure t = w.row(l.id).tenures[0];
  REQUIRE(t.segments.size() == 2);
  for (const Segment& s : t.segments) CHECK(s.to_us - end_us >= (s.part == "disk" ? 60 : 0) * second_us);
  for (const Segment& s : t.segments) CHECK(s.to_us - end_us < (s.part == "disk" ? 70 : 10) * second_us);
}

TEST_CASE("a machine has begun when it was made, whole seconds apart, however late it was found") {
  World w;
  w.run("r");
  Lease l = rented_row(w, "box", Value().set("ttl", "2h"));
  Lease found = l;
  found.generation = 2;
  found.machine_id = "m-late";
  found.tenures.clear();
  found.created_us = l.created_us + 700'000;
  found.live_us = l.created_us + 50 * second_us;
  const auto [made_us, begun_us] =
      GENERATE_COPY(std::pair(l.created_us + 3 * second_us, l.created_us + 3 * second_us),
                    std::pair(l.created_us, l.created_us + 700'000),             // a clock of whole seconds
                    std::pair(std::int64_t{0}, l.created_us + 700'000),          // it does not say
                    std::pair(l.created_us + hour_us, l.created_us + 700'000));  // its clock is wrong
  found.machine->created_wall_us = made_us;
  store::Journal::Write write = [&](store::Db& db) { return record_tenure(db, found); };
  REQUIRE(run_blocking(*w.loop, w.journal->commit(write)));
  const std::vector<Tenure> tenures = read_tenures(w.journal->reader(), found.number).value();
  REQUIRE(tenures.size() == 2);
  CHECK(tenures[1].from_us == begun_us);
  CHECK(tenures[1].segments[0].from_us == begun_us);
}

TEST_CASE("where starting is free, a machine costs since it was seen to run") {
  World w;
  w.run("r");
  w.cloud.billing.from_live = true;
  Lease l = rented_row(w, "box", Value().set("ttl", "2h"));
  const std::int64_t from_us = l.tenures[0].from_us;
  const auto record = [&](auto act) {
    store::Journal::Write write = [&](store::Db& db) { return act(db); };
    REQUIRE(run_blocking(*w.loop, w.journal->commit(write)));
  };
  record([&](store::Db& db) { return record_running(db, l.id, from_us + 40 * second_us); });
  record([&](store::Db& db) { return record_ready(db, l.id, from_us + 60 * second_us); });
  record([&](store::Db& db) { return record_running(db, l.id, from_us + 80 * second_us); });  // of a later look
  w.clock.us = from_us + 100 * second_us;
  CHECK(w.row(l.id).spent_micros(w.clock.us) == cost_micros(1'000'000, 60'000));
  CHECK(w.row(l.id).tenures[0].from_us == from_us);
}

TEST_CASE("the tightest of the run's, the tag's and the month's budget shortens the lease, or refuses it by name") {
  World w;
  w.run("r", "running", 50'000'000);
  w.sql("UPDATE runs SET tag='eval'");
  auto limit = [&](const char* scope, Micros micros) {
    Limit l;
    l.scope = scope;
    l.micros = micros;
    store::Journal::Write set = [l](store::Db& db) { return set_limit(db, l); };
    REQUIRE(run_blocking(*w.loop, w.journal->commit(set)));
  };
  limit("tag:eval", 3'000'000);
  limit("tag:other", 1);
  limit("month", 20'000'000);
  Lease l = rented_row(w, "box", Value().set("ttl", "10h").set("min_ttl", "1h"));
  CHECK(l.expires_us - l.created_us == 3 * hour_us);
  CHECK(l.request.expires_wall_us == l.expires_us);  // the dead man's, too
  Error e = refused(w, "more", Value().set("ttl", "10h").set("min_ttl", "1h"));
  CHECK(e.kind == ErrorKind::budget);
  CHECK(e.code == "tag:eval");
  for (const char* part : {"the budget of tag 'eval' of $3.00", "$0.00 are spent, $3.00 reserved by 1 lease",
                           "it needs $10.00", "$0.00 are left"})
    CHECK_THAT(e.message, Catch::Contains(part));

  limit("tag:eval", -1);
  limit("month", 4'000'000);
  Lease second = rented_row(w, "second", Value().set("ttl", "10h").set("min_ttl", "1h"));
  CHECK(second.expires_us - second.created_us == hour_us);
  CHECK_THAT(refused(w, "third", Value().set("ttl", "1h")).message, Catch::Contains("this month's budget of $4.00"));
}

TEST_CASE("a run that another has started spends its parent's budget, too") {
  World w;
  w.run("parent", "running", 3'000'000);
  w.run("r");
  w.sql("UPDATE runs SET parent='parent' WHERE id='r'");
  Lease l = rented_row(w, "box", Value().set("ttl", "2h"));
  Error e = refused(w, "more", Value().set("ttl", "2h").set("min_ttl", "2h"));
  CHECK(e.code == "run:parent");
  CHECK_THAT(e.message, Catch::Contains("the budget of its parent parent of $3.00"));
  CHECK(w.manager->money("parent")->front().reserved == 2'000'000);
}

TEST_CASE("what ended in another month leaves this one's budget alone") {
  World w;
  w.run("r");
  w.sql("UPDATE runs SET month_micros=5000000");
  Lease l = rented_row(w, "box", Value().set("ttl", "4h"));
  w.clock.us += 4 * hour_us;
  REQUIRE(w.release(l.id)->ok());
  CHECK(refused(w, "more", Value().set("ttl", "4h").set("min_ttl", "4h")).code == "month");
  w.clock.us += 40 * 24 * hour_us;
  CHECK(rented_row(w, "later", Value().set("ttl", "4h").set("min_ttl", "4h")).state == "live");
}

TEST_CASE("an unknown price or a foreign currency under a budget needs a price") {
  World w;
  bool foreign = GENERATE(true, false);
  if (foreign) w.cloud.currency = "CNY";
  else w.cloud.price_micros_per_hour = provider::price_unknown;
  w.run("r");
  const Lease free = rented_row(w, "free", Value(Value::Object{}));  // no budget: at one's own risk
  CHECK(free.tenures[0].unknown() == !foreign);
  CHECK(free.price().currency == (foreign ? "CNY" : "USD"));
  w.sql("UPDATE runs SET budget_micros=10000000");
  Error e = refused(w, "box", Value(Value::Object{}));
  CHECK(e.kind == ErrorKind::budget);
  CHECK_THAT(e.message, Catch::Contains(foreign ? "the price is in CNY" : "the price is not known"));
  CHECK_THAT(e.hint, Catch::Contains("price = "));
  Lease l = rented_row(w, "said", Value().set("price", 2.0).set("ttl", "1h"));
  CHECK(l.reserved_micros == 2'000'000);
}

namespace {

// Offers a type of which the list of prices has one, and says none itself.
class Unpriced final : public Seller {
 public:
  Unpriced() : Seller("lambda", "H100") {}

 private:
  Async<> ready(CancelToken) override { co_return success(); }
  void say(provider::Offer& o) override {
    o.id = "gpu_1x_h100_sxm5";
    o.price_micros_per_hour = provider::price_unknown;
  }
};

}  // namespace

TEST_CASE("a list price is no known price: a budget refuses, and the hint names it") {
  World w;
  (void)w.registry.add(std::make_unique<Unpriced>());
  w.run("r");
  w.sql("UPDATE runs SET budget_micros=100000000");
  const Value wanted = Value().set("provider", "lambda");
  const Error e = refused(w, "box", wanted);
  CHECK(e.kind == ErrorKind::budget);
  CHECK_THAT(e.message, Catch::Contains("the price is not known"));
  CHECK(e.hint ==
        "set its price: price = dollars per hour (its list price of 2026-10-10 is 4.29, which may have "
        "changed)");
  const Lease l = rented_row(w, "said", Value(wanted).set("price", 5.0).set("ttl", "1h"));
  CHECK(l.reserved_micros == 5'000'000);
}

TEST_CASE("without a rate, costs are counted in the provider's currency") {
  World w;
  w.run("r");
  w.cloud.currency = "CNY";
  w.cloud.disk_bytes_max = 1'000'000'000'000;
  w.cloud.disk_micros_per_gb_hour = 2'000;
  w.cloud.address_micros_per_hour = 5'000;
  const Lease l = rented_row(w, "box", Value().set("ttl", "10h").set("disk", "100GB"));
  CHECK(l.price_micros_per_hour == provider::price_unknown);
  CHECK(l.price().shown() == "1.00 CNY");
  REQUIRE(l.tenures.size() == 1);
  CHECK_FALSE(l.tenures[0].unknown());
  w.clock.us = l.created_us + 2 * hour_us;
  Lease now = w.row(l.id);
  const auto machine = cost_micros(1'000'000, (w.clock.us - now.tenures[0].from_us) / 1000);
  const auto disk = cost_micros(200'000, (w.clock.us - now.tenures[0].from_us) / 1000);
  CHECK(now.costs(w.clock.us) == Amounts{{"CNY", machine + disk}, {"USD", 10'000}});
  CHECK(now.spent_micros(w.clock.us) == 10'000);  // the budgets count dollars
  const Value shown = now.to_value(w.clock.us);
  CHECK(shown.text("currency") == "CNY");
  CHECK(shown.number("price_per_hour") == 1);
  CHECK(shown["costs"].number("CNY") == static_cast<double>(machine + disk) / 1e6);
  CHECK((*shown["machines"].as_array())[0].integer("machine_micros") == 0);
  CHECK(to_string(now.costs(w.clock.us)) == "$0.01 + " + format_money(machine + disk, "CNY"));
  // A price that moves stays in its currency, and none of another gets in between.
  const auto book = [&](Micros price, const std::string& currency) {
    store::Journal::Write move = [&](store::Db& db) {
      return record_prices(db, now, {{w.clock.us, price}}, false, currency);
    };
    REQUIRE(run_blocking(*w.loop, w.journal->commit(move)));
  };
  book(9'000'000, "USD");
  CHECK(w.row(l.id).price().shown() == "1.00 CNY");
  book(3'000'000, "CNY");
  CHECK(w.row(l.id).price().shown() == "3.00 CNY");
  CHECK(w.row(l.id).price_micros_per_hour == provider::price_unknown);
  w.manager->queries().set_rates({{"CNY", 0.1}});  // what is rented_row from now on
  CHECK(w.row(l.id).price().shown() == "3.00 CNY");
  CHECK(rented_row(w, "rated", Value().set("disk", "100GB")).price().shown() == "$0.10");
  REQUIRE(w.release(l.id)->ok());
  CHECK(w.row(l.id).costs(0).size() == 2);
}

TEST_CASE("a spot machine's price is followed in the currency in which it is counted") {
  World w;
  w.run("r");
  w.cloud.currency = "CNY";
  w.cloud.spot = true;
  const Lease l = rented_row(w, "box", Value().set("ttl", "10h").set("spot", true));
  w.clock.us += hour_us;
  w.cloud.told_price = 4'000'000;
  REQUIRE((*w.drive(w.manager->describe(w.row(l.id), {}))).ok());
  store::Journal::Write nothing = [](store::Db&) -> Result<> { return {}; };
  REQUIRE(run_blocking(*w.loop, w.journal->commit(nothing)));  // what was queued is written by now
  CHECK(w.row(l.id).price().shown() == "4.00 CNY");
}

TEST_CASE("an alert is taken once, and a month's once a month") {
  World w;
  w.run("r");
  Limit l;
  l.scope = "month";
  l.micros = 10'000'000;
  l.alert_percent = 50;
  l.alert_url = "http://hook";
  std::vector<Alert> due;
  store::Journal::Write set = [l](store::Db& db) { return set_limit(db, l); };
  store::Journal::Write take = [&](store::Db& db) -> Result<> {
    RILLE_TRY(due, take_alerts(db, w.clock.us));
    return {};
  };
  REQUIRE(run_blocking(*w.loop, w.journal->commit(set)));
  (void)rented_row(w, "a", Value().set("ttl", "4h"));
  REQUIRE(run_blocking(*w.loop, w.journal->commit(take)));
  CHECK(due.empty());
  (void)rented_row(w, "b", Value().set("ttl", "2h"));
  REQUIRE(run_blocking(*w.loop, w.journal->commit(take)));
  REQUIRE(due.size() == 1);
  CHECK(due[0].url == "http://hook");
  CHECK(due[0].money.reserved == 6'000'000);
  REQUIRE(run_blocking(*w.loop, w.journal->commit(take)));
  CHECK(due.empty());
  w.clock.us += 40 * 24 * hour_us;  // both still run, as far as the journal knows
  REQUIRE(run_blocking(*w.loop, w.journal->commit(take)));
  CHECK(due.size() == 1);
}

TEST_CASE("a machine without an automatic end is rented_row only with `unguarded`") {
  World w;
  w.run("r");
  w.cloud.traits.dead_man = provider::DeadMan::none;
  Error e = refused(w, "box", Value(Value::Object{}));
  CHECK_THAT(e.hint, Catch::Contains("unguarded = true"));
  CHECK(rented_row(w, "bold", Value().set("unguarded", true)).state == "live");
}

TEST_CASE("a second machine that came to light is in the ledger as well") {
  World w;
  w.run("r");
  Lease l = rented_row(w, "box", Value(Value::Object{}));
  w.cloud.put(l.tag, "twin", w.clock.us, w.clock.us);
  w.clock.us += hour_us;
  REQUIRE((*w.reap()).ok());
  Lease now = w.row(l.id);
  REQUIRE(now.tenures.size() == 2);
  CHECK(now.tenures[1].to_us > 0);
  CHECK(now.spent_micros(w.clock.us) >= 2'000'000);
}
