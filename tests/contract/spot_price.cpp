// The price of a spot machine moves while it runs: the ledger of a run that looks at it equals the provider's bill.
#include <algorithm>
#include <cmath>

#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/provider/spot_market.hpp"
#include "tests/contract/fake.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

constexpr int hour_s = 3'600;

// A home that rents from the fake.
struct Home : Fake {
  std::unique_ptr<store::Journal> journal = store::Journal::open(*loop, root + "/journal.db").value();
  Registry registry;
  Provider* cloud = nullptr;
  std::unique_ptr<lease::Manager> manager;
  const bool tried = has().market && variable("RILLE_FAKE_FILE", "").empty();  // not moto: its prices stand still

  Home() {
    Value settings = told["settings"];  // what is gone is soon proven to be: until then a ledger counts
    told.set("settings", settings.set("traits", Value().set("visibility_lag_ms", 300).set("create_timeout_ms", 1500)));
    provider = make();
    cloud = provider.get();
    REQUIRE(registry.add(std::move(provider)));
    lease::Hooks hooks;
    hooks.pause = [this](std::int64_t ms, CancelToken token) {
      return sleep_for(*loop, std::min<std::int64_t>(ms, 50), std::move(token));
    };
    control("set", Value().set("end", 0.02));
    manager = std::make_unique<lease::Manager>(*loop, *journal, registry, "0123456789ab", hooks);
    const auto row = [](store::Db& db) {
      return db.script(
          "INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid) "
          "VALUES('r','t','durable','running',1,'{}',0,0,'h',1)");
    };
    REQUIRE(wait(journal->commit(row)));
  }

  lease::Lease row(const std::string& id) { return manager->find(id).value().value(); }

  lease::Lease rent(const std::string& name) {
    lease::Acquire wanted;
    wanted.key = "main/" + name + "#1";
    wanted.name = name;
    wanted.fence = store::Fence("r", 1);
    wanted.options.set("provider", fake_name()).set("spot", true).set("ttl", "90h").set("unguarded", true);
    wanted.options.set("gpu", "any").set("rates", Value().set("CNY", 1.0));  // so that a ledger is as a bill
    const auto quiet = [](const std::string&, Value) {};
    auto rented = wait(manager->acquire(std::move(wanted), quiet, {}));
    if (!rented) FAIL(rented.error().message + " / " + rented.error().hint);
    for (int i = 0; i < 200; ++i) {
      const auto seen = wait(manager->describe(*rented, {}));
      if (!seen) FAIL(seen.error().message);
      if (seen->state == MachineState::live) break;
      (void)wait(sleep_for(*loop, 20));
    }
    const auto ready = [id = rented->id, now_us = clock.wall_us()](store::Db& db) {
      return lease::record_ready(db, id, now_us);
    };
    REQUIRE(wait(journal->commit(ready)));
    return row(rented->id);
  }

  Value machine_of(const lease::Lease& l) {
    const Value state = control("state");
    for (const Value& m : *state["machines"].as_array())
      if (l.machine_id.ends_with(m.text("id"))) return m;
    FAIL("the fake does not know " << l.machine_id);
    return {};
  }
  // What it costs from now on, of what was offered.
  void market_moves(const lease::Lease& l, double times) {
    Value price, prices;
    price.set("spot", static_cast<std::int64_t>(static_cast<double>(offered(l)) * times));
    prices.set(machine_of(l).text("type"), std::move(price));
    control("set", Value().set("prices", std::move(prices)));
  }
  static Micros offered(const lease::Lease& l) { return l.request.offer.price_micros_per_hour; }
  void look(const lease::Lease& l) {
    const auto followed = wait(manager->follow_price(l.id, 30'000, store::Fence("r", 1), {}));
    if (!followed) FAIL(followed.error().message);
  }
  // How many the machine itself has had.
  std::int64_t prices_of(const lease::Lease& l) {
    const std::vector<lease::Segment> segments = row(l.id).tenures.at(0).segments;
    return std::count_if(segments.begin(), segments.end(), [](const auto& s) { return s.part == "machine"; });
  }
  void release(const lease::Lease& l) {
    const auto ended = wait(manager->release(l.id, nullptr, store::Fence("r", 1)));
    if (!ended) FAIL(ended.error().message);
  }
  // Each begin, change and end may be a second apart, and Google's list has parts that are rounded.
  void check_bill(const lease::Lease& l, int seconds) {
    const Value billed = machine_of(l);
    const Micros bill = billed.integer("bill") + billed["bills"].integer("address");
    const lease::Lease now = row(l.id);
    const Micros ledger = now.spent_micros(clock.wall_us());
    Micros dearest = 0;
    for (const lease::Segment& s : now.tenures.at(0).segments) dearest = std::max(dearest, s.micros_per_hour);
    INFO(now.to_value(clock.wall_us()).to_json());
    INFO("ledger " << ledger << ", bill " << bill);
    CHECK(std::abs(ledger - bill) <= dearest * seconds / hour_s + bill / 100'000);
  }
};

void check_about(Micros price, double other) { CHECK(std::abs(static_cast<double>(price) - other) <= 2 + other / 1e3); }

}  // namespace

TEST_CASE_METHOD(Home, "spot price: what a look finds is booked from then on, and shown") {
  if (!tried) return;
  const lease::Lease l = rent("followed");
  const double offer = static_cast<double>(offered(l));
  look(l);
  check_about(row(l.id).price_micros_per_hour, offer);
  pass(13 * hour_s);  // longer than any answer serves
  market_moves(l, 1.2);
  look(l);
  check_about(row(l.id).price_micros_per_hour, offer * 1.2);
  CHECK(row(l.id).to_value(clock.wall_us()).number("price_per_hour") == Approx(offer * 1.2 / 1e6).epsilon(1e-3));
  check_bill(l, 4);
  pass(13 * hour_s);
  market_moves(l, 0.5);
  look(l);
  check_about(row(l.id).price_micros_per_hour, offer * 0.5);
  pass(2 * hour_s);
  check_bill(l, 6);
  release(l);
  check_bill(l, 8);
  CHECK(prices_of(l) == 3);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Home, "spot price: where the market has a history, the release books the prices between two looks") {
  if (!tried) return;
  const bool knows = dynamic_cast<SpotPriced&>(*cloud).market().knows_before;
  CHECK(knows == (has().history && fake_name() != "azure"));  // whose history is of the region, and a day late
  if (!knows) return;
  const lease::Lease l = rent("unwatched");
  pass(2 * hour_s);
  market_moves(l, 1.2);
  pass(3 * hour_s);
  market_moves(l, 0.7);
  pass(hour_s);
  release(l);
  check_bill(l, 8);
  CHECK(prices_of(l) == 3);
}

TEST_CASE_METHOD(Home, "spot price: one question serves all machines of a kind for some minutes") {
  if (!tried) return;
  std::vector<lease::Lease> all;
  for (const char* name : {"one", "two", "three"}) all.push_back(rent(name));
  pass(13 * hour_s);
  market_moves(all[0], 1.1);
  const auto asked_by = [this](const lease::Lease& l) {
    const std::size_t before = calls();
    look(l);
    return calls() - before;
  };
  CHECK(asked_by(all[0]) >= 1);
  for (const lease::Lease& l : all) {
    CHECK(asked_by(l) == 0);
    check_about(row(l.id).price_micros_per_hour, static_cast<double>(offered(l)) * 1.1);
  }
  for (const lease::Lease& l : all) {
    release(l);
    check_bill(l, 8);
  }
}

TEST_CASE_METHOD(Home, "spot price: one that cannot be had changes nothing, and is not asked for at each look") {
  if (!tried) return;
  const lease::Lease l = rent("refused");
  pass(13 * hour_s);
  market_moves(l, 1.2);
  const char* asked = fake_name() == "gcp" ? "listSkus" : "*";  // not the token that comes before it
  fault("refuse", asked, 1, Value().set("status", 400).set("code", "NotToday"));
  CHECK_FALSE(wait(manager->follow_price(l.id, 30'000, store::Fence("r", 1), {})));
  check_about(row(l.id).price_micros_per_hour, static_cast<double>(offered(l)));
  const std::size_t before = calls();
  (void)wait(manager->follow_price(l.id, 30'000, store::Fence("r", 1), {}));
  CHECK(calls() == before);
  CHECK(wait(manager->describe(row(l.id), {})).value().state == MachineState::live);
  pass(2 * 60);
  look(l);
  check_about(row(l.id).price_micros_per_hour, static_cast<double>(offered(l)) * 1.2);
  release(l);
}

TEST_CASE_METHOD(Home, "spot price: a bid never costs more than the cap") {
  if (!tried) return;
  const lease::Lease l = rent("capped");
  pass(13 * hour_s);
  market_moves(l, 2);
  look(l);
  if (has().cap) CHECK(row(l.id).price_micros_per_hour <= l.cap_micros_per_hour + 1);
  else check_about(row(l.id).price_micros_per_hour, static_cast<double>(offered(l)) * 2);
  CHECK(row(l.id).committed_micros(clock.wall_us()) >= row(l.id).spent_micros(clock.wall_us()));
  release(l);
}
