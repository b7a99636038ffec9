// What the vendors' documents and models say of requests and answers, which a driver once had otherwise.
#include <algorithm>

#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/owner.hpp"
#include "tests/contract/fake.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

struct Vendor : Fake {
  std::size_t asked(const std::string& operation) {
    std::size_t n = 0;
    const Value state = control("state");
    for (const Value& call : *state["calls"].as_array()) n += call.text("operation") == operation;
    return n;
  }
  static const Offer* one(const std::vector<Offer>& all, const std::string& type) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Offer& o) {
      return o.id.substr(o.id.find('/') + 1).substr(0, type.size()) == type;
    });
    return found == all.end() ? nullptr : &*found;
  }
  Error refused(const std::string& token) {
    const auto made = wait(provider->create(order(token), {}));
    REQUIRE_FALSE(made);
    INFO(made.error().message);
    return made.error();
  }
};

}  // namespace

TEST_CASE_METHOD(Vendor, "huawei: flavors are read to the last page") {
  if (fake_name() != "huawei") return;
  const std::size_t before = offers("any").size();
  control("set", Value().set("abandoned", 2000));
  CHECK(offers("any").size() == before);
}

TEST_CASE_METHOD(Vendor, "azure: the pages of a price history that does not end are an error") {
  if (fake_name() != "azure") return;
  OfferQuery query;
  query.gpu = "A100";
  const std::int64_t since_us = loop->clock().wall_us() - 6LL * 3'600'000'000;
  REQUIRE(wait(provider->price_history(query, since_us, {})));
  CHECK(asked("resourceGraph") < 20);
  control("set", Value().set("endless", true));
  const auto all = wait(provider->price_history(query, since_us, {}));
  REQUIRE_FALSE(all);
  CHECK(all.error().message.find("more than 200 pages") != std::string::npos);
}

TEST_CASE_METHOD(Vendor, "azure: a size that is not in the zone is not offered there") {
  if (fake_name() != "azure") return;
  CHECK(one(offers("any"), "Standard_D2s_v4"));
  Value settings = told["settings"];
  settings.set("zone", "1");
  told.set("settings", settings);
  provider = make();
  const std::vector<Offer> all = offers("any");
  CHECK(one(all, "Standard_D2s_v5"));
  CHECK_FALSE(one(all, "Standard_D2s_v4"));
}

// 404 and 400 with the reason in the message, 410 with the reason as the code.
TEST_CASE_METHOD(Vendor, "an offer of Vast that is gone is missing capacity, in each of its three forms") {
  if (fake_name() != "vast") return;
  const char* text = "error 404/3603: no_such_ask Instance type by id 8000000 is not available.";
  for (const auto& [status, code] : {std::pair(404, "invalid_args"), {400, "invalid_args"}, {410, "no_such_ask"}}) {
    INFO(status);
    fault("capacity", "createInstance", 1, Value().set("status", status).set("code", code).set("message", text));
    CHECK(to_string(refused("gone" + std::to_string(status)).kind) == std::string("capacity"));
  }
  fault("capacity", "createInstance", 1, Value().set("status", 400).set("code", "invalid_args").set("message", "disk"));
  CHECK(to_string(refused("other").kind) == std::string("invalid"));
}

TEST_CASE_METHOD(Vendor, "more offers of Vast than one search returns are found by the next") {
  if (fake_name() != "vast") return;
  for (const bool spot : {false, true}) {
    std::set<std::string> ids;
    for (const Offer& o : offers("any", spot)) ids.insert(o.id);
    CHECK(ids.size() == 72);  // six types in twelve places
  }
}

TEST_CASE_METHOD(Vendor, "gcp: each type has its price, by the names that the price list has for its parts") {
  if (fake_name() != "gcp") return;
  const std::vector<Offer> all = offers("any");
  for (const Offer& o : all) {
    INFO(o.id);
    CHECK(o.price_micros_per_hour != price_unknown);
  }
  const std::pair<const char*, double> prices[] = {{"a3-megagpu-8g", 82'754'208 + 208 * 26'924 + 1872 * 2'344},
                                                   {"a3-ultragpu-8g", 74'493'920 + 224 * 26'924 + 2952 * 2'344},
                                                   {"a4-highgpu-8g", 8 * 16'110'000},
                                                   {"g4-standard-48", 2'100'000 + 48 * 24'988 + 180 * 2'927},
                                                   {"n2d-standard-8", 8 * 27'502 + 32 * 3'686},
                                                   {"c2d-standard-8", 8 * 29'563 + 32 * 3'959},
                                                   {"e2-medium", 21'811 + 4 * 2'923}};
  for (const auto& [type, micros] : prices) {
    INFO(type);
    const Offer* const offer = one(all, type);
    REQUIRE(offer);
    CHECK(static_cast<double>(offer->price_micros_per_hour) == Approx(micros).epsilon(0.4));  // a region's factor
    CHECK(offer->reserved_1y_micros_per_hour != price_unknown);
  }
  const std::vector<Offer> spot = offers("any", true);
  for (const auto& [type, micros] : prices) CHECK(one(spot, type)->price_micros_per_hour != price_unknown);
}

TEST_CASE_METHOD(Vendor, "RunPod without GraphQL: on demand goes on, spot says why it does not") {
  if (fake_name() != "runpod") return;
  for (const int status : {404, 410}) {
    control("set", Value().set("gone", status));
    provider = make();
    const auto found = wait(provider->check({}));
    if (!found) FAIL(found.error().message);
    CHECK(found->account.find("user_fake") != std::string::npos);
    CHECK_FALSE(wait(owner_of(provider.get(), "", {})).value().empty());
    const CreateRequest request = order("life");
    CHECK(request.offer.vcpus == 0);  // REST does not tell
    const auto made = wait(provider->create(request, {}));
    if (!made) FAIL(made.error().message);
    until(made->id, MachineState::live);
    REQUIRE(wait(provider->terminate(made->id, {})));
    OfferQuery query;
    query.gpu = "A100";
    query.spot = true;
    const auto spot = wait(provider->offers(query, {}));
    REQUIRE_FALSE(spot);
    INFO(spot.error().message);
    CHECK(spot.error().message.find("GraphQL API is not there any more") != std::string::npos);
    CHECK(spot.error().hint.find("on demand") != std::string::npos);
    CHECK(to_string(spot.error().kind) == std::string("invalid"));
  }
}

TEST_CASE_METHOD(Vendor, "disks are no larger than Alibaba's system disks are") {
  if (fake_name() != "alibaba") return;
  for (const Offer& o : offers("any")) CHECK(o.disk_bytes_max <= 2'048'000'000'000);
}

TEST_CASE_METHOD(Vendor, "tencent: spot quotas count processors, and disks that are sold out are missing capacity") {
  if (fake_name() != "tencent") return;
  std::set<std::string> names;
  const std::vector<Quota> all = wait(provider->quotas("", {})).value();
  for (const Quota& quota : all) names.insert(quota.name.substr(0, 11));
  CHECK(names == std::set<std::string>{"by use, mac", "spot, vCPUs"});
  for (const char* code :
       {"InvalidParameter.InvalidCloudDiskSoldOut", "UnsupportedOperation.InsufficientClusterQuota"}) {
    fault("capacity", "RunInstances", 1, Value().set("code", code));
    CHECK(to_string(refused("soldout").kind) == std::string("capacity"));
  }
}

TEST_CASE_METHOD(Vendor, "a launch that Lambda calls a duplicate is a conflict") {
  if (fake_name() != "lambda") return;
  fault("capacity", "*", 1, Value().set("status", 400).set("code", "global/duplicate").set("message", "a duplicate"));
  CHECK(to_string(refused("twice").kind) == std::string("state"));
}
