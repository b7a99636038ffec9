#include "runtime/workflow/provider/tencent/cvm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/net/sign/tencent.hpp"
#include "runtime/workflow/provider/amounts.hpp"
#include "runtime/workflow/provider/cloud/attaching.hpp"
#include "runtime/workflow/provider/cloud/prices.hpp"
#include "runtime/workflow/provider/gpus.hpp"

namespace rille::provider::tencent {

namespace {

using net::Effect;
using net::list_of;
using net::Trouble;

constexpr int page_rows = 100, rows_max = 20'000;
constexpr std::int64_t gpus_last_us = 24LL * 3'600'000'000;

constexpr net::Meaning meanings[] = {
    {"ResourceInsufficient*", Trouble::capacity},
    {"ResourcesSoldOut*", Trouble::capacity},
    {"ResourceUnavailable.InstanceType", Trouble::capacity},
    {"InvalidParameter.InvalidCloudDiskSoldOut", Trouble::capacity},
    {"UnsupportedOperation.InsufficientClusterQuota", Trouble::capacity},
    {"InvalidParameterValue.InsufficientOffering", Trouble::capacity},
    {"UnsupportedOperation.NoInstanceTypeSupportSpot", Trouble::capacity},
    {"UnsupportedOperation.SpotUnsupportedRegion", Trouble::capacity},
    {"InvalidParameterValue.InsufficientPrice", Trouble::capacity,
     "the market price is above your maximum: raise max_price"},
    {"LimitExceeded*", Trouble::quota, "request more on the console's quota page, or use another region"},
    {"InstancesQuotaLimitExceeded", Trouble::quota},
    {"OverQuota", Trouble::quota},
    {"InvalidAccount.InsufficientBalance", Trouble::quota, "the account's balance is too low"},
    {"UnsupportedOperation.InstanceStatePending", Trouble::transient},
    {"UnsupportedOperation.InstanceStateStarting", Trouble::transient},
    {"UnsupportedOperation.InstanceStateTerminating", Trouble::not_found},  // the instance is being terminated
    {"InvalidInstanceId.NotFound", Trouble::not_found},
    {"InvalidDiskId.NotFound", Trouble::not_found},
    {"InvalidDisk.RepeatRefund", Trouble::not_found},  // the disk is already deleted
    {"InvalidDisk.Attached", Trouble::conflict, "an instance has the disk: release that instance first"},
    {"ResourceUnavailable.Attached", Trouble::conflict, "an instance has the disk: release that instance first"},
    {"InvalidDisk.Busy", Trouble::conflict},
    {"ResourceBusy", Trouble::conflict},
    {"ResourceInUse*", Trouble::conflict},
    {"UnauthorizedOperation*", Trouble::auth, "the keys lack a permission: rille doctor --provider tencent --policy"},
};

// GPU model and memory by type family, from the documentation, for types of which CVM returns only the number of GPUs
// (https://www.tencentcloud.com/document/product/560/19701).
struct Family {
  const char *name, *gpu;
  std::int64_t gib;
};
constexpr Family families[] = {{"GN7", "T4", 16},     {"GN7vi", "T4", 16},    {"GN8", "P40", 24},
                               {"GN10X", "V100", 32}, {"GN10Xp", "V100", 32}, {"GT4", "A100 40GB", 40},
                               {"PNV4", "A10", 24},   {"GI3X", "T4", 16}};

constexpr const char* prepaid = "PREPAID";

// The hourly prices of one type with a commitment of one and three years, each in the cheapest zone.
struct Reserved {
  Micros year = price_unknown, three_years = price_unknown;
  void learn(const Value& price) {
    const auto least = [](Micros& known, Micros told) {
      if (told != price_unknown && (known == price_unknown || told < known)) known = told;
    };
    const double one = price.number("DiscountPriceOneYear", price.number("OriginalPriceOneYear"));
    const double three = price.number("DiscountPriceThreeYear", price.number("OriginalPriceThreeYear"));
    least(year, cloud::hourly_of(one, 1));
    least(three_years, cloud::hourly_of(three, 3));
  }
};

Instance read_instance(const Value& v) {
  Instance out;
  out.id = v.text("InstanceId");
  out.state = v.text("InstanceState");
  out.zone = v["Placement"].text("Zone");
  out.type = v.text("InstanceType");
  out.problem = v.text("LatestOperationErrorMsg");
  for (const Value& tag : list_of(v["Tags"])) {
    if (tag.text("Key") == tag_key) out.tag = tag.text("Value");
    cloud::read_mount_tag(tag.text("Key"), tag.text("Value"), out.volumes);
  }
  for (const Value& address : list_of(v["PublicIpAddresses"]))
    if (address.as_string()) out.address = *address.as_string();
  for (const Value& address : list_of(v["PrivateIpAddresses"]))
    if (address.as_string()) out.private_address = *address.as_string();
  if (const Result<std::int64_t> created = parse_utc(v.text("CreatedTime"))) out.created_wall_us = *created;
  return out;
}

}  // namespace

Micros hourly_of(const Value& price) {
  if (price.text("ChargeUnit") != "HOUR") return price_unknown;
  return cloud::micros_of(price.number("UnitPriceDiscount", price.number("UnitPrice")));
}

net::ApiOptions api_options(std::string service, std::string version, std::string region) {
  net::ApiOptions out = net::tencent::api_options(std::move(service), std::move(version), std::move(region));
  out.meanings = meanings;
  return out;
}

Cvm::Cvm(Loop& loop, net::CredentialChain& keys, std::string region, const Value& endpoints)
    : region_(std::move(region)), url_(endpoints.text("cvm", "https://cvm.tencentcloudapi.com")),
      api_(loop, api_options("cvm", "2017-03-12", region_), keys) {}

Async<Value> Cvm::call(std::string action, Value request, Effect effect, CancelToken token) {
  net::Parts parts = parts_for(url_, action, request.as_object() ? to_plain_json(request) : "{}");
  co_return co_await api_.call(std::move(action), std::move(parts), effect, std::move(token));
}

// Requests the GPUs of all types, with one call for all zones (zone "") or one zone, since the filter takes one value.
Async<> Cvm::learn_gpus(std::string zone, CancelToken token) {
  if (!gpus_.empty() && api_.now_us() - gpus_at_us_ <= gpus_last_us) co_return success();
  Value asked;
  if (!zone.empty())
    asked.set("Filters", Value::Array{Value().set("Name", "zone").set("Values", Value::Array{Value(zone)})});
  RILLE_CO_TRY(const Value answer,
               co_await call("DescribeInstanceTypeConfigs", std::move(asked), Effect::none, std::move(token)));
  if (!answer["InstanceTypeConfigSet"].as_array()) co_return net::not_theirs("tencent", "DescribeInstanceTypeConfigs");
  gpus_.clear();
  for (const Value& v : *answer["InstanceTypeConfigSet"].as_array()) {
    Gpus& one = gpus_[v.text("InstanceType")];
    one.count = v.number("GpuCount");
    one.model = gpu_model(v.text("GpuType"));
    one.memory_bytes = amounts::bytes(v.number("GpuMemory"), amounts::gib);  // GpuMemory is in GiB
  }
  gpus_at_us_ = api_.now_us();
  co_return success();
}

bool Cvm::read_gpus(const Value& row, Offer& offer) const {
  const auto at = gpus_.find(offer.id);
  const Gpus told = at == gpus_.end() ? Gpus() : at->second;
  const double count = row.number("GpuCount", told.count);
  if (count > 0 && count < 1) return false;
  offer.gpu_count = amounts::count(count);
  if (offer.gpu_count == 0) return true;
  const std::string family = row.text("InstanceFamily");
  const auto known =
      std::find_if(std::begin(families), std::end(families), [&](const Family& f) { return family == f.name; });
  const bool found = known != std::end(families);
  offer.gpu = !told.model.empty() ? told.model : found ? known->gpu : gpu_model(family);
  offer.gpu_memory_bytes = told.memory_bytes > 0 ? told.memory_bytes : found ? known->gib << 30 : 0;
  return true;
}

Async<std::vector<Offer>> Cvm::sold(std::string zone, bool spot, CancelToken token) {
  RILLE_CO_CHECK(co_await learn_gpus(zone, token));
  Value::Array charges{Value(spot ? "SPOTPAID" : by_use)};
  if (!spot) charges.emplace_back(prepaid);  // PREPAID rows have the prices with a commitment
  Value::Array filters{Value().set("Name", "instance-charge-type").set("Values", std::move(charges))};
  if (!zone.empty()) filters.push_back(Value().set("Name", "zone").set("Values", Value::Array{Value(zone)}));
  Value asked;
  asked.set("Filters", std::move(filters));
  RILLE_CO_TRY(const Value answer,
               co_await call("DescribeZoneInstanceConfigInfos", std::move(asked), Effect::none, token));
  std::map<std::string, Offer> cheapest;
  std::map<std::string, Reserved> reserved;
  if (!answer["InstanceTypeQuotaSet"].as_array())
    co_return net::not_theirs("tencent", "DescribeZoneInstanceConfigInfos");
  for (const Value& v : *answer["InstanceTypeQuotaSet"].as_array()) {
    if (v.text("Status") != "SELL") continue;
    if (v.text("InstanceFamily").starts_with("SR")) continue;  // families SR* have ARM processors
    if (v.text("InstanceChargeType") == prepaid) {
      reserved[v.text("InstanceType")].learn(v["Price"]);
      continue;
    }
    Offer offer;
    offer.id = v.text("InstanceType");
    offer.vcpus = amounts::count(v.number("Cpu"));
    offer.memory_bytes = amounts::bytes(v.number("Memory"), amounts::gib);
    if (!read_gpus(v, offer)) continue;
    offer.price_micros_per_hour = hourly_of(v["Price"]);
    if (offer.price_micros_per_hour == price_unknown) continue;
    const auto [at, fresh] = cheapest.emplace(offer.id, offer);
    if (!fresh && offer.price_micros_per_hour < at->second.price_micros_per_hour) at->second = std::move(offer);
  }
  std::vector<Offer> out;
  for (auto& [type, offer] : cheapest) {
    if (const auto at = reserved.find(type); at != reserved.end()) {
      offer.reserved_1y_micros_per_hour = at->second.year;
      offer.reserved_3y_micros_per_hour = at->second.three_years;
    }
    out.push_back(std::move(offer));
  }
  co_return out;
}

Async<Micros> Cvm::spot_price(std::string type, std::string zone, CancelToken token) {
  Value::Array filters;
  for (const auto& [name, value] : {std::pair("instance-charge-type", std::string("SPOTPAID")),
                                    std::pair("instance-type", std::move(type)), std::pair("zone", std::move(zone))})
    filters.push_back(Value().set("Name", name).set("Values", Value::Array{Value(value)}));
  Value asked;
  asked.set("Filters", std::move(filters));
  RILLE_CO_TRY(const Value answer,
               co_await call("DescribeZoneInstanceConfigInfos", std::move(asked), Effect::none, token));
  if (!answer["InstanceTypeQuotaSet"].as_array())
    co_return net::not_theirs("tencent", "DescribeZoneInstanceConfigInfos");
  Micros out = price_unknown;
  for (const Value& v : *answer["InstanceTypeQuotaSet"].as_array()) out = hourly_of(v["Price"]);
  co_return out;
}

Async<std::string> Cvm::run(Value request, std::int64_t send_by_wall_us, CancelToken token) {
  RILLE_CO_TRY(const Value answer,
               co_await call("RunInstances", std::move(request), Effect::lasting.by(send_by_wall_us), token));
  const Value::Array ids = list_of(answer["InstanceIdSet"]);
  if (ids.empty() || !ids[0].as_string()) co_return net::not_theirs("tencent", "RunInstances");
  co_return *ids[0].as_string();
}

Async<std::vector<Instance>> Cvm::describe(Value request, CancelToken token) {
  std::vector<Instance> out;
  for (std::int64_t offset = 0; offset < rows_max;) {
    Value asked = request;
    asked.set("Offset", offset).set("Limit", page_rows);
    RILLE_CO_TRY(const Value answer, co_await call("DescribeInstances", std::move(asked), Effect::none, token));
    const Value::Array rows = list_of(answer["InstanceSet"]);
    const bool counted = answer["TotalCount"].as_number();
    if (!counted || (rows.empty() && offset < answer.integer("TotalCount")))
      co_return net::not_theirs("tencent", "DescribeInstances");
    for (const Value& v : rows) out.push_back(read_instance(v));
    offset += static_cast<std::int64_t>(rows.size());
    if (rows.empty() || offset >= answer.integer("TotalCount")) co_return out;
  }
  co_return make_error(
      ErrorKind::integrity,
      fmt::format("Tencent's answer to DescribeInstances has more than {} rows, which is the most that Rille reads",
                  rows_max),
      "run it again; if it stays, report it as a bug of Rille");
}

Async<> Cvm::terminate(std::string id, CancelToken token) {
  Value asked;
  asked.set("InstanceIds", Value::Array{Value(id)});
  auto answer = co_await call("TerminateInstances", std::move(asked), Effect::none, token);
  if (!answer) co_return answer.error();
  co_return success();
}

Async<> Cvm::act(std::string action, std::string id, Value more, Effect effect, CancelToken token) {
  more.set("InstanceIds", Value::Array{Value(id)});
  auto answer = co_await call(std::move(action), std::move(more), effect, token);
  if (!answer) co_return answer.error();
  co_return success();
}

// Stops the instance with KEEP_CHARGING: billing continues, so that Tencent Cloud keeps the capacity reserved.
Async<> Cvm::stop(std::string id, CancelToken token) {
  Value how;
  how.set("StopType", "SOFT_FIRST").set("StoppedMode", "KEEP_CHARGING");
  return act("StopInstances", std::move(id), std::move(how), Effect::none, std::move(token));
}

Async<> Cvm::change_type(std::string id, std::string type, CancelToken token) {
  Value how;
  how.set("InstanceType", std::move(type));
  return act("ResetInstancesType", std::move(id), std::move(how), Effect::lasting, std::move(token));
}

Async<> Cvm::start(std::string id, CancelToken token) {
  return act("StartInstances", std::move(id), Value(Value::Object{}), Effect::none, std::move(token));
}

// Tencent Cloud's quotas count the machines in a zone, not their vCPUs.
Async<std::vector<Quota>> Cvm::quotas(CancelToken token) {
  RILLE_CO_TRY(const Value answer, co_await call("DescribeAccountQuota", Value(), Effect::none, token));
  const Value& sets = answer["AccountQuotaOverview"]["AccountQuota"];
  std::vector<Quota> out;
  for (const auto& [set, name] :
       {std::pair("PostPaidQuotaSet", "by use, machines"), std::pair("SpotPaidQuotaSet", "spot, vCPUs")})
    for (const Value& v : list_of(sets[set])) {
      Quota quota;
      quota.region = region_;
      quota.name = fmt::format("{} in {}", name, v.text("Zone"));
      quota.limit = v.number("TotalQuota");
      quota.used = v.number("UsedQuota", -1);
      out.push_back(std::move(quota));
    }
  co_return out;
}

}  // namespace rille::provider::tencent
