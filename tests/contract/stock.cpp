// What is sold out is not offered; and what a type's GPUs are, where the cloud says it.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "runtime/workflow/provider/type_of.hpp"
#include "tests/contract/fake.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

struct Stocked : Fake {
  bool has(const std::string& type, bool spot = false) {
    const std::vector<Offer> all = offers("any", spot);
    return std::any_of(all.begin(), all.end(),
                       [&](const Offer& o) { return o.id.substr(o.id.find('/') + 1) == type + (spot ? ":spot" : ""); });
  }
  std::size_t asked(const std::string& operation) {
    std::size_t n = 0;
    const Value state = control("state");
    for (const Value& call : *state["calls"].as_array()) n += call.text("operation") == operation;
    return n;
  }
  void left(const std::string& type, int count) { control("set", Value().set("stock", Value().set(type, count))); }
};

}  // namespace

TEST_CASE_METHOD(Stocked, "huawei: a zone that a flavor does not name is as the flavor's status") {
  if (fake_name() != "huawei") return;
  const auto left_in = [this](const std::string& zone, int count) {
    left("c7.large.2@" + zone, count);
    provider = make();
  };
  for (const bool spot : {false, true}) {
    INFO(spot);
    CHECK(has("c7.large.2", spot));        // names no zone, and for use no status either
    CHECK_FALSE(has("s2.large.2", spot));  // abandoned everywhere
    left_in("cn-north-4b", 0);
    CHECK(has("c7.large.2", spot));  // another zone is named
    left_in("cn-north-4a", 0);
    CHECK_FALSE(has("c7.large.2", spot));
    left_in("cn-north-4a", 9);
    left_in("cn-north-4b", 9);
  }
  CHECK(has("p5.32xlarge.16"));
  CHECK_FALSE(has("p5.32xlarge.16", true));  // says nothing of spot
}

TEST_CASE_METHOD(Stocked, "huawei: prices are asked of the other site where the account is that one's, once") {
  if (fake_name() != "huawei") return;
  control("set", Value().set("international", true));
  const std::vector<Offer> all = offers("any");
  REQUIRE_FALSE(all.empty());
  for (const Offer& o : all) CHECK(o.price_micros_per_hour != price_unknown);
  const std::size_t before = asked("ratePrices"), spot = offers("any", true).size();
  CHECK(spot > 0);
  CHECK(asked("ratePrices") == before + spot);  // the first host is not asked again
  Value settings = told["settings"], endpoints = settings["endpoints"];
  endpoints.as_object()->erase("bss_intl");
  settings.set("endpoints", endpoints);
  told.set("settings", settings);
  provider = make();
  OfferQuery query;
  query.left_out = std::make_shared<LeftOut>();
  const auto none = wait(provider->offers(query, {}));
  const Error why = none ? query.left_out->unasked.at(0).problem.value() : none.error();
  CHECK(why.code == "CBC.0156");
  CHECK(why.hint.find("bss") != std::string::npos);
}

TEST_CASE_METHOD(Stocked, "what is sold out is not offered") {
  const std::map<std::string, std::string> all{
      {"alibaba", "ecs.gn7e-c16g1.4xlarge"}, {"tencent", "GT4.4XLARGE96"}, {"huawei", "p3.2xlarge.8"}};
  const auto mine = all.find(fake_name());
  if (mine == all.end()) return;
  const std::string& type = mine->second;
  for (const bool spot : {false, true}) CHECK(has(type, spot));
  left(type, 1);
  provider = make();
  for (const bool spot : {false, true}) CHECK(has(type, spot));
  left(type, 0);
  provider = make();
  for (const bool spot : {false, true}) CHECK_FALSE(has(type, spot));
  CHECK_FALSE(offers("A100").empty());  // another type has some
}

TEST_CASE_METHOD(Stocked, "alibaba: stock is asked for once for a region, and once more for spot") {
  if (fake_name() != "alibaba") return;
  for (int n = 0; n < 3; ++n) offers("any");
  CHECK(asked("DescribeAvailableResource") == 1);
  for (int n = 0; n < 3; ++n) offers("A100", true);
  CHECK(asked("DescribeAvailableResource") == 2);
  CHECK(asked("DescribeInstanceTypes") == 1);
  Value settings = told["settings"];
  settings.set("zone", "cn-hangzhou-nowhere");
  std::ofstream(root + "/nowhere.json")
      << Value().set("alibaba", settings.set("regions", Value::Array{"cn-hangzhou"})).to_json();
  const auto made = make_providers(*loop, root + "/nowhere.json", root + "/home");
  REQUIRE(made);
  OfferQuery query;
  const auto none = wait(made->front()->offers(query, {}));
  REQUIRE_FALSE(none);
  CHECK(none.error().kind == ErrorKind::config);
  CHECK(none.error().message.find("cn-hangzhou-nowhere") != std::string::npos);
}

TEST_CASE_METHOD(Stocked, "tencent: GPUs are what CVM says they are, and what the table says where CVM does not") {
  if (fake_name() != "tencent") return;
  std::vector<Offer> some = offers("H100");  // of a family that is in no table
  REQUIRE(some.size() == 1);
  CHECK(some[0].gpu == "H100");
  CHECK(some[0].gpu_count == 8);
  CHECK(some[0].gpu_memory_bytes == 80LL << 30);
  some = offers("T4");  // of one of which CVM tells the number alone
  REQUIRE(some.size() == 2);
  for (const Offer& o : some) CHECK(o.gpu_memory_bytes == 16LL << 30);
  for (const Offer& o : offers("A100")) CHECK(o.gpu_memory_bytes == 40LL << 30);
  offers("any", true);
  CHECK(asked("DescribeInstanceTypeConfigs") == 1);
}

TEST_CASE_METHOD(Stocked, "gcp: one region has several zones, of which the next is asked where one has nothing left") {
  if (fake_name() != "gcp") return;
  Value settings = told["settings"];
  Value zones(Value::Array{Value("us-central1-a"), Value("us-central1-b")});
  settings.as_object()->erase("zone");
  settings.set("regions", Value().set("us-central1", Value().set("zone", std::move(zones))));
  told.set("settings", settings);
  provider = make();
  left("a2-highgpu-1g@us-central1-a", 0);
  std::vector<Offer> both;
  for (Offer& o : offers("A100"))
    if (type_of(o) == "a2-highgpu-1g") both.push_back(std::move(o));
  REQUIRE(both.size() == 2);
  CHECK(both[0].id == "us-central1/a2-highgpu-1g");
  CHECK(both[1].id == "us-central1/a2-highgpu-1g@us-central1-b");
  CHECK(both[0].price_micros_per_hour == both[1].price_micros_per_hour);
  CreateRequest first = order("first"), second = order("second");
  first.offer = both[0];
  second.offer = both[1];
  const auto none = wait(provider->create(first, {}));
  REQUIRE_FALSE(none);
  CHECK(none.error().kind == ErrorKind::capacity);
  const auto made = wait(provider->create(second, {}));
  REQUIRE(made);
  const auto seen = wait(provider->describe(made->id, {}));
  REQUIRE(seen);
  CHECK(seen->details.text("zone") == "us-central1-b");
  CHECK(seen->details.text("type") == type_of(both[1]));
  REQUIRE(wait(provider->terminate(made->id, {})));
}

// Of each cloud whose settings name zones itself: two of one region, and the subnets where each zone has its own.
struct Zones {
  const char *region, *type;
  std::vector<std::string> zones, subnets;
};
static std::optional<Zones> zones_here() {
  const std::map<std::string, Zones> all{
      {"tencent",
       {"ap-guangzhou", "S6.MEDIUM4", {"ap-guangzhou-6", "ap-guangzhou-7"}, {"subnet-fake0006", "subnet-fake0007"}}},
      {"huawei", {"cn-north-4", "c7.large.2", {"cn-north-4a", "cn-north-4b"}, {}}},
      {"alibaba",
       {"cn-hangzhou",
        "ecs.c7.large",
        {"cn-hangzhou-i", "cn-hangzhou-j"},
        {"vsw-bp1fake000000000000i", "vsw-bp1fake000000000000j"}}}};
  const auto mine = all.find(fake_name());
  return mine == all.end() ? std::nullopt : std::optional(mine->second);
}

TEST_CASE_METHOD(Stocked, "stock: each of the zones that the settings name sells by itself") {
  const std::optional<Zones> here = zones_here();
  if (!here) return;
  const auto list_of = [](const std::vector<std::string>& names) {
    return Value(Value::Array(names.begin(), names.end()));
  };
  Value settings = told["settings"];
  Value of_region = Value().set("zone", list_of(here->zones));
  if (!here->subnets.empty()) of_region.set("subnet", list_of(here->subnets));
  settings.set("regions", Value().set(here->region, of_region));
  told.set("settings", settings);
  provider = make();
  const auto ids = [&] {
    std::vector<std::string> out;
    for (const Offer& o : offers("any"))
      if (type_of(o) == here->type) out.push_back(o.id);
    return out;
  };
  const std::string first = fmt::format("{}/{}", here->region, here->type), second = first + "@" + here->zones[1];
  CHECK(ids() == std::vector<std::string>{first, second});
  left(fmt::format("{}@{}", here->type, here->zones[0]), 0);
  provider = make();
  CHECK(ids() == std::vector<std::string>{second});
  CreateRequest request = order("second");
  for (const Offer& o : offers("any"))
    if (o.id == second) request.offer = o;
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message + " / " + made.error().hint);
  const auto seen = wait(provider->describe(made->id, {}));
  REQUIRE(seen);
  CHECK(seen->details.text("zone") == here->zones[1]);
  CHECK(seen->details.text("type") == here->type);
  REQUIRE(wait(provider->terminate(made->id, {})));
  request.offer.id = first + "@nowhere";
  request.token = "nowhere";
  const auto refused = wait(provider->create(request, {}));
  REQUIRE_FALSE(refused);
  CHECK(to_string(refused.error().kind) == to_string(ErrorKind::config));

  // A list of one zone is that zone; subnets without zones are not understood.
  settings.set("regions", Value().set(here->region, Value().set("zone", list_of({here->zones[0]}))));
  told.set("settings", settings);
  CHECK_FALSE(wait(make()->offers(OfferQuery(), {})).value().empty());
  if (here->subnets.empty()) return;
  settings.set("regions",
               Value().set(here->region, Value().set("zone", here->zones[0]).set("subnet", list_of(here->subnets))));
  std::ofstream(root + "/providers.json") << Value().set(fake_name(), settings).to_json();
  const auto wrong = make_providers(*loop, root + "/providers.json", root + "/home");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message.find("have different lengths") != std::string::npos);
}
