// From the ranked list to a machine: which offer is tried next after each kind of refusal, with a token of its own.
#include <set>

#include "runtime/workflow/lease/terms.hpp"
#include "runtime/workflow/provider/reach.hpp"
#include "tests/unit/lease/cloud.hpp"

using namespace rille;
using namespace rille::lease;
using namespace rille::lease::test;

namespace {

// A provider whose offers and refusals the test writes down.
class Shop final : public provider::Provider {
 public:
  explicit Shop(std::string name) : name_(std::move(name)) { traits_.dead_man = provider::DeadMan::provider; }
  const std::string& name() const override { return name_; }
  const provider::Traits& traits() const override { return traits_; }

  provider::Offer& sell(const std::string& id, const std::string& gpu, int count, double price,
                        const std::string& region = "east") {
    provider::Offer o;
    o.provider = name_;
    o.id = id;
    o.gpu = gpu;
    o.gpu_count = count;
    o.gpu_memory_bytes = 80LL << 30;
    o.vcpus = 12 * count;
    o.memory_bytes = 64LL << 30;
    o.region = region;
    o.price_micros_per_hour = static_cast<Micros>(price * 1e6);
    stock.push_back(o);
    return stock.back();
  }
  void refuse(const std::string& id, ErrorKind kind, const std::string& code = "") {
    Error e = make_error(kind, id + " is refused");
    e.provider = name_;
    e.code = code;
    refusals[id] = e;
  }

  Async<std::vector<provider::Offer>> offers(provider::OfferQuery query, CancelToken) override {
    ++asked;
    if (out_of_order) co_return *out_of_order;
    if (query.left_out) *query.left_out = left_out;
    std::vector<provider::Offer> out;
    for (const provider::Offer& o : stock)
      if (o.matches(query)) out.push_back(o);
    co_return out;
  }
  Async<provider::Machine> create(provider::CreateRequest request, CancelToken) override {
    tried.push_back(request.offer.id);
    tokens.insert(request.token);
    last = request;
    if (const auto at = refusals.find(request.offer.id); at != refusals.end()) co_return at->second;
    provider::Machine m;
    m.id = "m-" + std::to_string(tried.size());
    m.tag = request.tag;
    m.state = provider::MachineState::live;
    machines.push_back(m);
    co_return m;
  }
  Async<provider::Machine> describe(std::string id, CancelToken) override {
    provider::Machine gone;
    gone.id = id;
    for (const provider::Machine& m : machines)
      if (m.id == id) co_return m;
    co_return gone;
  }
  Async<std::vector<provider::Machine>> list(std::string, CancelToken) override { co_return machines; }
  Async<> terminate(std::string id, CancelToken) override {
    std::erase_if(machines, [&id](const provider::Machine& m) { return m.id == id; });
    co_return success();
  }

  std::vector<provider::Offer> stock;
  std::map<std::string, Error> refusals;
  std::vector<std::string> tried;
  std::set<std::string> tokens;
  std::vector<provider::Machine> machines;
  std::optional<provider::CreateRequest> last;
  std::optional<Error> out_of_order;
  provider::LeftOut left_out;
  int asked = 0;

 private:
  std::string name_;
  provider::Traits traits_;
};

struct Street : World {
  Street() { run("r"); }
  Shop& open(const std::string& name) {
    auto made = std::make_unique<Shop>(name);
    Shop& shop = *made;
    REQUIRE(registry.add(std::move(made)).ok());
    return shop;
  }
  Result<Lease> want(const char* options, const std::string& name = "box") {
    auto r = rent(wanted("r", name, Value::from_json(options).value()));
    REQUIRE(r);
    return *r;
  }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a rent goes down the ranked list, with a new token for each offer") {
  Street s;
  Shop& shop = s.open("shop");
  shop.sell("a100", "A100", 1, 2.0);                            // 6.4 millidollars per TFLOP
  shop.sell("h100", "H100", 1, 3.0);                            // 3.0
  shop.sell("t4", "T4", 1, 0.5).gpu_memory_bytes = 16LL << 30;  // 7.7
  for (const char* id : {"a100", "h100", "t4"}) shop.refuse(id, ErrorKind::capacity);
  const Result<Lease> none = s.want(R"({"gpu": "any", "rank": "price_per_tflop"})");
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().kind == ErrorKind::capacity);
  CHECK(none.error().message == "t4 is refused");
  CHECK(shop.tried == Names{"h100", "a100", "t4"});
  CHECK(shop.tokens.size() == 3);
  CHECK(s.row(Manager::lease_id("r", "main/box#1")).state == "released");

  shop.tried.clear();
  REQUIRE_FALSE(s.want(R"({"gpu": "any", "max_price": 5})", "second").ok());
  CHECK(shop.tried == Names{"t4", "a100", "h100"});
}

TEST_CASE("offers are listed once, and a failing provider delays no other") {
  Street s;
  Shop &shop = s.open("shop"), &broken = s.open("broken");
  broken.out_of_order = make_error(ErrorKind::network, "no route").with_retry();
  for (int i = 0; i < 6; ++i) {
    const std::string id = "n" + std::to_string(i);
    shop.sell(id, "A100", 1, 1.0 + 0.1 * i, "region-" + std::to_string(i));
    if (i < 5) shop.refuse(id, ErrorKind::capacity);
  }
  const Result<Lease> got = s.want(R"({"gpu": "A100"})");
  REQUIRE(got.ok());
  CHECK(got->request.offer.id == "n5");
  CHECK(shop.asked == 1);
  CHECK(broken.asked == 1);
}

TEST_CASE("a list of offers says what it leaves out, after the offers") {
  Street s;
  Shop &shop = s.open("shop"), &whole = s.open("whole");
  shop.sell("a100", "A100", 1, 2.0);
  whole.sell("h100", "H100", 1, 1.0);
  shop.left_out.unpriced = 37;
  shop.left_out.unasked.push_back({"far", make_error(ErrorKind::auth, "no such key", "set one")});
  auto listed = s.drive(s.manager->queries().offers(Value().set("gpu", "any"), {}));
  REQUIRE(listed);
  REQUIRE(listed->ok());
  const Value::Array& rows = *(*listed)->as_array();
  REQUIRE(rows.size() == 4);  // the machines of "cloud" have no GPU
  CHECK(rows[0].text("id") == "h100");
  CHECK(rows[1].text("id") == "a100");
  CHECK(rows[2].text("provider") == "shop");
  CHECK(rows[2].text("region") == "far");
  CHECK(rows[2].text("error") == "no such key");
  CHECK(rows[2].text("kind") == "auth");
  CHECK(rows[2].text("hint") == "set one");
  CHECK(rows[3].text("provider") == "shop");
  CHECK(rows[3].integer("unpriced") == 37);
  CHECK(rows[3].text("note") == "37 further types fit, whose price was not asked: name a GPU, a region or a size");
}

TEST_CASE("where a region has nothing left, other regions come first") {
  Street s;
  Shop& shop = s.open("shop");
  shop.sell("east-small", "A100", 1, 1.0, "east");
  shop.sell("east-large", "A100", 2, 1.1, "east");
  shop.sell("west", "A100", 1, 1.5, "west");
  shop.refuse("east-small", ErrorKind::capacity);
  REQUIRE(s.want(R"({"gpu": "A100"})").ok());
  CHECK(shop.tried == Names{"east-small", "west"});
}

TEST_CASE("a rent does not go on to what costs more than twice as much, unless max_price allows it") {
  Street s;
  Shop& shop = s.open("shop");
  shop.sell("one", "T4", 1, 0.5, "east");
  shop.sell("large", "T4", 1, 1.0, "west");
  shop.sell("eight", "T4", 8, 8.0, "west");
  shop.refuse("one", ErrorKind::capacity);
  SECTION("what costs up to twice as much is taken") {
    REQUIRE(s.want(R"({"gpu": "T4"})").ok());
    CHECK(shop.tried == Names{"one", "large"});
  }
  SECTION("the error names what is left, and what takes it") {
    shop.refuse("large", ErrorKind::capacity);
    const Result<Lease> none = s.want(R"({"gpu": "T4"})");
    REQUIRE_FALSE(none.ok());
    CHECK(shop.tried == Names{"one", "large"});
    CHECK(none.error().message == "large is refused");
    CHECK(none.error().hint == "eight of shop at $8.00 an hour (8 T4) is left: max_price = 8.00 takes it");
    shop.tried.clear();
    REQUIRE(s.want(R"({"gpu": "T4", "max_price": 8})", "second").ok());
    CHECK(shop.tried.back() == "eight");
  }
  SECTION("also where the cheap one was refused to another lease a moment ago") {
    shop.refuse("large", ErrorKind::capacity);
    REQUIRE_FALSE(s.want(R"({"gpu": "T4"})").ok());
    shop.tried.clear();
    REQUIRE_FALSE(s.want(R"({"gpu": "T4"})", "second").ok());
    CHECK(shop.machines.empty());
  }
}

TEST_CASE("a refusal blocks what it speaks of") {
  Street s;
  Shop &aws = s.open("aws"), &other = s.open("other");
  const auto fill = [&] {
    aws.sell("e-8", "A100", 8, 1.0, "east");
    aws.sell("e-16", "A100", 16, 1.1, "east");
    aws.sell("e-1", "A100", 1, 1.2, "east");
    aws.sell("e-h", "H100", 8, 1.3, "east");
    aws.sell("w-8", "A100", 8, 1.4, "west");
    other.sell("o", "A100", 8, 1.9);
  };
  fill();
  SECTION("a quota: what is as large or larger, of that GPU, there") {
    for (const char* id : {"e-8", "e-1", "e-h", "w-8"}) aws.refuse(id, ErrorKind::quota, "VcpuLimitExceeded");
    REQUIRE(s.want(R"({"gpu": "any"})").ok());
    CHECK(aws.tried == Names{"e-8", "e-1", "e-h", "w-8"});
  }
  SECTION("a region that this account has not opened") {
    aws.refuse("e-8", ErrorKind::quota, "OptInRequired");
    REQUIRE(s.want(R"({"gpu": "A100"})").ok());
    CHECK(aws.tried == Names{"e-8", "w-8"});
  }
  SECTION("an account that is being checked, or keys that are not taken") {
    const bool checked = GENERATE(true, false);
    aws.refuse("e-8", checked ? ErrorKind::quota : ErrorKind::auth, checked ? "PendingVerification" : "AuthFailure");
    REQUIRE(s.want(R"({"gpu": "A100"})").ok());
    CHECK(aws.tried == Names{"e-8"});
    CHECK(other.tried == Names{"o"});
  }
  SECTION("a right that this type alone lacks") {
    aws.refuse("e-8", ErrorKind::auth, "UnauthorizedOperation");
    REQUIRE(s.want(R"({"gpu": "A100"})").ok());
    CHECK(aws.tried == Names{"e-8", "e-16"});
  }
}

TEST_CASE("what was refused to one lease a moment ago comes last for the next") {
  Street s;
  Shop& shop = s.open("shop");
  shop.sell("cheap", "A100", 1, 1.0, "east");
  shop.sell("dear", "A100", 1, 2.0, "west");
  shop.refuse("cheap", ErrorKind::capacity);
  REQUIRE(s.want(R"({"gpu": "A100"})", "first").ok());
  REQUIRE(s.want(R"({"gpu": "A100"})", "second").ok());
  CHECK(shop.tried == Names{"cheap", "dear", "dear"});
  s.clock.us += 181'000'000;
  REQUIRE(s.want(R"({"gpu": "A100"})", "third").ok());
  CHECK(shop.tried == Names{"cheap", "dear", "dear", "cheap", "dear"});
}

TEST_CASE("offers in another currency are compared, reserved and capped by the rate that the user gives") {
  Street s;
  Shop& shop = s.open("shop");
  provider::Offer& yuan = shop.sell("yuan", "A100", 1, 10.0);
  yuan.currency = "CNY";
  yuan.spot = true;
  shop.sell("dollar", "A100", 1, 2.0).spot = true;
  const Result<Lease> plain = s.want(R"({"gpu": "A100", "spot": true})", "plain");
  REQUIRE(plain.ok());
  CHECK(plain->request.offer.id == "dollar");
  const Result<Lease> rated =
      s.want(R"({"gpu": "A100", "spot": true, "rates": {"CNY": 0.125}, "max_price": 1.5, "ttl": "1h"})", "rated");
  REQUIRE(rated.ok());
  CHECK(rated->request.offer.id == "yuan");
  CHECK(rated->price_micros_per_hour == 1'250'000);
  CHECK(rated->cap_micros_per_hour == 1'500'000);
  CHECK(shop.last->cap_micros_per_hour == 12'000'000);  // as its provider counts
  s.manager->queries().set_rates({{"CNY", 0.1}});
  const Result<Lease> set = s.want(R"({"gpu": "A100", "spot": true})", "set up");
  REQUIRE(set.ok());
  CHECK(set->price_micros_per_hour == 1'000'000);
}

TEST_CASE("an offer above max_price in another currency is reported in dollars if there is a rate") {
  Street s;
  Shop& shop = s.open("shop");
  shop.sell("yuan", "A100", 1, 10.0).currency = "CNY";
  const Result<Lease> rated = s.want(R"({"gpu": "A100", "rates": {"CNY": 0.125}, "max_price": 1})", "rated");
  REQUIRE_FALSE(rated.ok());
  CHECK(rated.error().hint == "the cheapest that fits is yuan at $1.25 an hour: raise max_price");
  const Result<Lease> plain = s.want(R"({"gpu": "A100", "max_price": 1})", "plain");
  REQUIRE_FALSE(plain.ok());
  CHECK_THAT(plain.error().hint,
             Catch::Contains("its price in CNY: rates = { CNY = DOLLARS } gives the exchange rate"));
  shop.sell("dollar", "A100", 1, 2.0);  // a known price is reported, though ten yuan may be less
  const Result<Lease> either = s.want(R"({"gpu": "A100", "max_price": 1})", "either");
  REQUIRE_FALSE(either.ok());
  CHECK_THAT(either.error().hint, Catch::Contains("dollar at $2"));
}

TEST_CASE("a disk whose price is in a currency without a rate is not taken for dollars") {
  const auto terms = [](const char* options) { return read_terms(Value::from_json(options).value()).value(); };
  provider::Offer offer;
  offer.currency = "CNY";
  offer.disk_micros_per_gb_hour = 1'000;
  CHECK(terms(R"({"disk": "100GB"})").disk_of(offer, 0) == provider::price_unknown);
  CHECK(terms(R"({"disk": "100GB", "rates": {"CNY": 0.125}})").disk_of(offer, 0) == 12'500);
  CHECK(terms("{}").disk_of(offer, 0) == 0);
  offer.currency = "USD";
  CHECK(terms(R"({"disk": "100GB"})").disk_of(offer, 0) == 100'000);
}

TEST_CASE("a disk without a stated price is not free, unless the machine is") {
  Terms terms = read_terms(Value::from_json(R"({"disk": "100GB"})").value()).value();
  provider::Offer offer;
  offer.provider = "aws";
  CHECK(terms.disk_of(offer, 0) == 0);
  offer.price_micros_per_hour = 3'000'000;
  CHECK(terms.disk_of(offer, 0) == provider::price_unknown);
  terms.disk_prices = {{"aws", 0.08}};
  CHECK(terms.disk_of(offer, 0) == 10'959);  // 100 times 0.08 dollars in 730 hours, rounded up
  offer.disk_micros_per_gb_hour = 1'000;
  CHECK(terms.disk_of(offer, 0) == 10'959);  // a price from the user comes before the offer's
}

TEST_CASE("a spot machine has a quarter of headroom unless the rent says how much") {
  const auto cap = [](const char* options, bool spot) {
    provider::Offer offer;
    offer.spot = spot;
    offer.price_micros_per_hour = 2'000'000;
    return read_terms(Value::from_json(options).value()).value().cap_of(offer, 0);
  };
  CHECK(cap(R"({"spot": true})", true) == 2'500'000);
  CHECK(cap(R"({"spot": true, "max_price": 2.1})", true) == 2'100'000);
  CHECK(cap("{}", false) == 2'000'000);
}

TEST_CASE("an included disk is counted if its price is known") {
  const auto terms = [](const char* options) { return read_terms(Value::from_json(options).value()).value(); };
  provider::Offer offer;
  offer.provider = "vast";
  offer.price_micros_per_hour = 1'000'000;
  offer.disk_bytes_max = 1'000'000'000'000;
  CHECK(terms("{}").disk_of(offer, 50'000'000'000) == provider::price_unknown);
  offer.disk_micros_per_gb_hour = 1'000;
  CHECK(terms("{}").disk_of(offer, 50'000'000'000) == 50'000);
  CHECK(terms(R"({"disk": "10GB"})").disk_of(offer, 50'000'000'000) == 10'000);
  Terms told = terms("{}");
  told.disk_prices = {{"vast", 73.0}};
  CHECK(told.disk_of(offer, 50'000'000'000) == 5'000'000);
}

TEST_CASE("max_price is for a machine and its disk") {
  provider::Traits traits;
  traits.dead_man = provider::DeadMan::provider;
  provider::Offer offer;
  offer.price_micros_per_hour = 1'000'000;
  const auto obstacle = [&](const char* options, Micros disk) {
    const char* why = read_terms(Value::from_json(options).value()).value().obstacle(offer, traits, disk);
    return std::string(why ? why : "");
  };
  CHECK(obstacle(R"({"max_price": 1.05})", 50'000).empty());
  CHECK_THAT(obstacle(R"({"max_price": 1.04})", 50'000), Catch::Contains("max_price"));
  CHECK(obstacle(R"({"max_price": 1.04})", provider::price_unknown).empty());
  CHECK(obstacle("{}", 50'000).empty());
  offer.spot = true;
  const Terms terms = read_terms(Value::from_json(R"({"max_price": 2, "spot": true})").value()).value();
  CHECK(terms.cap_of(offer, 50'000) == 1'950'000);
}

TEST_CASE("a size without a unit and an empty size are refused") {
  for (const char* options :
       {R"({"disk": 64})", R"({"disk": "64"})", R"({"disk": -5})", R"({"memory": 64})", R"({"memory": "64"})",
        R"({"disk": "0GB"})", R"({"disk": "-1GB"})", R"({"disk": true})"}) {
    const Result<Terms> r = read_terms(Value::from_json(options).value());
    CAPTURE(options);
    REQUIRE_FALSE(r.ok());
    CHECK(r.error().kind == ErrorKind::invalid);
    CHECK_FALSE(r.error().hint.empty());
  }
  CHECK(read_terms(Value::from_json(R"({"disk": 64})").value()).error().hint == "disk = \"64GB\"");
}

TEST_CASE("a provider that is not there is named, with the nearest") {
  Street s;
  s.open("runpod");
  for (const char* options : {R"({"provider": "runpood"})", R"({"providers": ["runpood"]})"}) {
    const Result<Lease> r = s.want(options);
    REQUIRE_FALSE(r.ok());
    CHECK(r.error().kind == ErrorKind::invalid);
    CHECK(r.error().hint == "did you mean 'runpod'?");
  }
  CHECK(read_terms(Value::from_json(R"({"provider": "a", "providers": ["b"]})").value()).error().kind ==
        ErrorKind::invalid);
}
