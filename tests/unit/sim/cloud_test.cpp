// The simulated cloud keeps the rules of provider.hpp, its books, and its word: the same seed does the same things.
#include <catch2/catch.hpp>

#include "runtime/core/base/units.hpp"
#include "runtime/workflow/provider/sim/sim.hpp"

using namespace rille;
using namespace rille::provider;
using namespace rille::provider::sim;

namespace {

struct CloudWorld {
  VirtualTime time;
  std::unique_ptr<Loop> loop = Loop::create_virtual(time).value();
  Cloud cloud;
  std::unique_ptr<Provider> provider;
  explicit CloudWorld(sim::Options options) : cloud(time, options), provider(make_provider(*loop, cloud)) {}

  template <class T>
  T run(Task<T> task) {
    return run_blocking(*loop, std::move(task));
  }
  std::vector<Offer> offers(const char* gpu, bool spot) {
    OfferQuery q = OfferQuery::from_value(Value().set("gpu", gpu).set("spot", spot)).value();
    Result<std::vector<Offer>> found = run(provider->offers(q, {}));
    return found ? *found : offers(gpu, spot);  // a fault
  }
  Result<Machine> create(const std::string& token, bool spot = false, std::int64_t lives_ms = 0) {
    CreateRequest r;
    r.offer = offers("H100:8", spot).at(0);
    r.token = token;
    r.tag = "rille-" + token;
    if (lives_ms) r.expires_wall_us = time.wall_us() + lives_ms * 1000;
    return run(provider->create(r, {}));
  }
  MachineState state(const std::string& id) { return run(provider->describe(id, {}))->state; }
};

// The machine's whole life in one line.
std::string history(std::uint64_t seed) {
  CloudWorld w(sim::Options::hostile(seed));
  std::string out;
  for (int i = 0; i < 6; ++i) {
    auto m = w.create("t" + std::to_string(i), true);
    out += m ? m->id : m.error().message;
    w.time.pass(600'000);
    if (m) (void)w.run(w.provider->terminate(m->id, {}));
  }
  return out + " " + std::to_string(w.cloud.bill_micros()) + " " + std::to_string(w.cloud.now_us());
}

}  // namespace

TEST_CASE("offers: by model, count, spot and price, cheapest first; spot moves and costs less on average") {
  CloudWorld w(sim::Options::calm(1));
  auto offers = w.offers("A100:8", false);
  REQUIRE(offers.size() == 4);
  CHECK(offers[0].region == "us-east");
  CHECK(offers[0].price_micros_per_hour == 29'360'000);
  CHECK(std::is_sorted(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
    return a.price_micros_per_hour < b.price_micros_per_hour;
  }));
  CHECK(w.offers("any", false).size() > 40);
  CHECK(w.offers("cpu", false).front().gpu_count == 0);
  Micros least = INT64_MAX, most = 0;
  for (int hour = 0; hour < 100; ++hour, w.time.pass(3'600'000)) {
    Micros price = w.offers("H100:8", true).at(0).price_micros_per_hour;
    least = std::min(least, price), most = std::max(most, price);
  }
  CHECK(most < 31'920'000);
  CHECK(most - least > 1'000'000);
}

TEST_CASE("a machine is made once per token, starts, and ends on terminate, as the provider reports") {
  CloudWorld w(sim::Options::calm(2));
  auto made = w.create("a");
  REQUIRE(made);
  CHECK(made->tag == "rille-a");
  CHECK(w.create("a")->id == made->id);
  CHECK(w.cloud.made().at("rille-a") == 1);
  CHECK(w.create("b")->id != made->id);
  w.time.pass(600'000);
  CHECK(w.state(made->id) == MachineState::live);
  CHECK(w.run(w.provider->list("rille-", {}))->size() == 2);
  CHECK(w.run(w.provider->terminate(made->id, {})));
  CHECK(w.state(made->id) == MachineState::terminating);
  w.time.pass(60'000);
  CHECK(w.state(made->id) == MachineState::gone);
  CHECK(w.run(w.provider->list("rille-a", {}))->empty());
  CHECK(w.run(w.provider->terminate(made->id, {})));
  CHECK(w.run(w.provider->terminate("sim-99", {})));
  CHECK(w.state("sim-99") == MachineState::gone);
  CHECK(w.cloud.alive() == 1);
}

TEST_CASE("the bill: from live to the order to end, by unit and minimum, and not a micro-dollar more") {
  sim::Options o = sim::Options::calm(3);
  o.latency_ms = 0;
  o.billing_minimum_s = 600;
  o.billing_unit_s = 60;
  CloudWorld w(o);
  auto made = w.create("a");
  const Box& box = *w.cloud.find(made->id);
  CHECK(w.cloud.bill_micros() == 0);
  w.time.pass((box.live_us - w.cloud.now_us()) / 1000 + 1000);
  CHECK(w.cloud.bill_micros() == cost_micros(31'920'000, 600'000));  // the minimum
  w.time.pass(3'600'000);
  (void)w.run(w.provider->terminate(made->id, {}));
  CHECK(w.cloud.bill_micros() == cost_micros(31'920'000, 3'660'000));  // 3601 s and a bit: 61 minutes
  w.time.pass(86'400'000);
  CHECK(w.cloud.bill_micros() == cost_micros(31'920'000, 3'660'000));
  provider::BillQuery query;
  query.machines = {made->id, "sim-99"};
  auto bills = w.run(w.provider->bill(query, {})).value();
  REQUIRE(bills.size() == 1);
  CHECK(bills[0].final);
  CHECK(bills[0].micros == w.cloud.bill_micros());
}

TEST_CASE("an expiry ends a machine without a request, and spot machines are taken away with notice") {
  sim::Options o = sim::Options::calm(4);
  o.preemptions = 100;
  o.without_notice = 0;
  CloudWorld w(o);
  auto expiring = w.create("a", false, 3'600'000);
  w.time.pass(3'590'000);
  CHECK(w.state(expiring->id) == MachineState::live);
  w.time.pass(10'000);
  CHECK(w.state(expiring->id) == MachineState::gone);
  auto spot = w.create("b", true);
  const Box& box = *w.cloud.find(spot->id);
  REQUIRE(box.notice_us > 0);
  w.time.pass((box.notice_us - w.cloud.now_us()) / 1000 + 1);
  auto noticed = w.run(w.provider->describe(spot->id, {}));
  CHECK(noticed->notice_wall_us == box.lost_us);
  w.time.pass(200'000);
  CHECK(w.state(spot->id) == MachineState::gone);
  CHECK(w.cloud.preempted() == 1);
  Micros billed = w.cloud.bill_micros(box, w.cloud.now_us());
  w.time.pass(200'000);
  CHECK(w.cloud.bill_micros(box, w.cloud.now_us()) == billed);
}

TEST_CASE("what is made shows at the latest after the lag, and faults say what they are") {
  sim::Options o = sim::Options::calm(5);
  o.visibility_lag_ms = 60'000;
  o.faults.lost_reply = o.faults.late = 1;
  CloudWorld w(o);
  CreateRequest r;
  r.offer.id = "h100x8@us-east";
  r.token = "a", r.tag = "rille-a";
  auto made = w.run(w.provider->create(r, {}));
  REQUIRE_FALSE(made);
  CHECK(made.error().kind == ErrorKind::network);
  CHECK(made.error().retryable);
  CHECK(made.error().provider == "sim");
  CHECK(w.cloud.counts.late == 1);
  w.time.pass(o.create_timeout_ms + o.visibility_lag_ms);
  CHECK(w.cloud.list("rille-a").size() == 1);
  o = sim::Options::calm(6);
  o.faults.throttle = 1;
  CloudWorld throttled(o);
  auto refused = throttled.run(throttled.provider->list("rille-", {}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().http_status == 429);
  CHECK(refused.error().retry_after_ms >= 1000);
}

TEST_CASE("a seed is a world: the same one twice, another one next to it") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) CHECK(history(seed) == history(seed));
  CHECK(history(1) != history(2));
}

TEST_CASE("a machine becomes another type: it comes up anew, and each type has its own bill") {
  sim::Options options = sim::Options::calm(3);
  options.billing_minimum_s = 600;
  CloudWorld w(options);
  auto made = w.create("a");  // h100x8
  REQUIRE(made);
  w.time.pass(3'600'000);
  const Micros before = w.cloud.bill_micros();
  const auto resize = [&](const char* type) { return w.run(w.provider->resize(made->id, type, {})); };
  REQUIRE(resize("h100x8"));
  CHECK(w.cloud.counts.resized == 0);
  const auto changed = resize("a100-80x8");
  REQUIRE(changed);
  CHECK(changed->state == MachineState::pending);
  w.time.pass(3'600'000);
  const auto now = w.run(w.provider->describe(made->id, {}));
  REQUIRE(now);
  CHECK(now->state == MachineState::live);
  CHECK(now->details.text("type") == "a100-80x8");
  const Box& box = *w.cloud.find(made->id);
  REQUIRE(box.before.size() == 1);
  const std::int64_t old_ms = (box.before[0].to_us - box.before[0].from_us) / 1000;
  CHECK(w.cloud.bill_micros(box, box.live_us) >= before);
  CHECK(w.cloud.bill_micros(box, box.live_us) - cost_micros(31'920'000, old_ms) < 10'000);  // a second that has begun
  CHECK(w.cloud.bill_micros(box, box.live_us + 1'000'000) - w.cloud.bill_micros(box, box.live_us) ==
        cost_micros(29'360'000, 600'000));
  CHECK(resize("no-such").error().kind == ErrorKind::invalid);
  REQUIRE(w.run(w.provider->terminate(made->id, {})));
  CHECK(resize("h100x8").error().http_status == 404);

  auto spot = w.create("b", true);
  REQUIRE(spot);
  w.time.pass(600'000);
  CHECK(w.run(w.provider->resize(spot->id, "a100-80x8", {})).error().kind == ErrorKind::invalid);
}

TEST_CASE("the history of spot prices is what the market was") {
  CloudWorld w(sim::Options::calm(4));
  w.time.pass(48LL * 3'600'000);
  OfferQuery query = OfferQuery::from_value(Value().set("gpu", "H100:8").set("spot", true)).value();
  const auto points = w.run(w.provider->price_history(query, w.time.wall_us() - 24LL * 3'600'000'000, {}));
  REQUIRE(points);
  CHECK(points->size() >= 4 * 24);
  for (const PricePoint& p : *points) {
    CHECK(p.type == "h100x8");
    CHECK(p.micros_per_hour > 0);
    CHECK(p.micros_per_hour < 31'920'000 * 13 / 10);
  }
}
