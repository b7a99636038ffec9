#include "runtime/workflow/provider/alibaba/ecs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/net/sign/alibaba.hpp"
#include "runtime/workflow/provider/amounts.hpp"
#include "runtime/workflow/provider/cloud/attaching.hpp"
#include "runtime/workflow/provider/gpus.hpp"

namespace rille::provider::alibaba {

namespace {

using net::Effect;
using net::list_of;
using net::Trouble;

constexpr const char* version = "2014-05-26";
constexpr int pages_max = 200;

constexpr net::Meaning meanings[] = {
    {"OperationDenied.NoStock", Trouble::capacity},
    {"Zone.NotOnSale", Trouble::capacity},
    {"InvalidResourceType.NotSupported", Trouble::capacity},
    {"OperationDenied.ZoneNotAllowed", Trouble::capacity},
    {"OperationDenied.ZoneSystemCategoryNotMatch", Trouble::capacity},
    {"InvalidInstanceType.NotSupported*", Trouble::capacity},
    {"Invalid.PrivatePoolOptions.NoStock", Trouble::capacity},
    {"LackResource", Trouble::capacity},
    {"InvalidSpotPriceLimit.*", Trouble::capacity, "the market price is above your maximum: raise max_price"},
    {"QuotaExceed.*", Trouble::quota, "request more in the Quota Center, or use another region"},
    {"InvalidAccountStatus.NotEnoughBalance", Trouble::quota, "the account's balance is too low"},
    {"Account.Arrearage", Trouble::quota, "the account has unpaid bills"},
    {"OperationConflict*", Trouble::transient},
    {"IdempotentProcessing", Trouble::transient},
    {"LastTokenProcessing", Trouble::transient},
    {"IncorrectInstanceStatus.Initializing", Trouble::transient},
    {"IdempotentParameterMismatch", Trouble::conflict},
    {"IncorrectInstanceStatus", Trouble::conflict},
    {"IncorrectDiskStatus*", Trouble::conflict},
    {"InvalidDiskId.NotFound", Trouble::not_found},
    {"InvalidInstanceId.NotFound", Trouble::not_found},
    {"Forbidden.InstanceNotFound", Trouble::not_found},
    {"Forbidden*", Trouble::auth, "the keys lack a permission: rille doctor --provider alibaba --policy"},
    {"NoPermission", Trouble::auth, "the keys lack a permission: rille doctor --provider alibaba --policy"},
};

Micros micros_of(const Value& price) {
  const double* number = price.as_number();
  return number ? amounts::price(*number) : price_unknown;
}

// The machine's part of a price that also includes the disk.
Micros of_machine(const Value& price) {
  Micros out = micros_of(price["TradePrice"]);
  for (const Value& part : list_of(price["DetailInfos"]["DetailInfo"]))
    if (net::lower_case(part.text("Resource")) == "instancetype") out = micros_of(part["TradePrice"]);
  return out;
}

// Parses "2026-11-21T02:03Z", with or without seconds, to microseconds since 1970; 0: not a time.
std::int64_t minute_of(std::string text) {
  if (text.size() == 17) text.insert(16, ":00");
  const Result<std::int64_t> us = parse_utc(text);
  return us ? *us : 0;
}

std::string tag_in(const Value& v, const char* key = tag_key) {
  for (const Value& tag : list_of(v["Tags"]["Tag"]))
    if (tag.text("TagKey") == key) return tag.text("TagValue");
  return "";
}

Disk read_disk(const Value& v) {
  Disk out;
  out.id = v.text("DiskId");
  out.tag = tag_in(v);
  out.status = v.text("Status");
  out.zone = v.text("ZoneId");
  out.machine = v.text("InstanceId");
  // Without its tags it may still be a volume, whose data must not count as gone.
  out.is_volume = out.tag.empty() || !tag_in(v, volume_key).empty();
  return out;
}

Instance read_instance(const Value& v) {
  Instance out;
  out.id = v.text("InstanceId");
  out.status = v.text("Status");
  out.zone = v.text("ZoneId");
  out.type = v.text("InstanceType");
  out.created_wall_us = minute_of(v.text("CreationTime"));
  out.tag = tag_in(v);
  for (const Value& tag : list_of(v["Tags"]["Tag"]))
    cloud::read_mount_tag(tag.text("TagKey"), tag.text("TagValue"), out.volumes);
  for (const Value& lock : list_of(v["OperationLocks"]["LockReason"]))
    out.reclaimed = out.reclaimed || lock.text("LockReason") == "Recycling";
  for (const Value& address : list_of(v["PublicIpAddress"]["IpAddress"]))
    if (address.as_string()) out.address = *address.as_string();
  if (out.address.empty()) out.address = v["EipAddress"].text("IpAddress");
  for (const Value& address : list_of(v["VpcAttributes"]["PrivateIpAddress"]["IpAddress"]))
    if (address.as_string()) out.private_address = *address.as_string();
  return out;
}

}  // namespace

net::ApiOptions api_options(std::string api_version) {
  net::ApiOptions out = net::alibaba::api_options(std::move(api_version));
  out.meanings = meanings;
  return out;
}

Ecs::Ecs(Loop& loop, net::CredentialChain& keys, std::string region, const Value& endpoints)
    : region_(std::move(region)), url_(endpoints.text("ecs", fmt::format("https://ecs.{}.aliyuncs.com", region_))),
      api_(loop, api_options(version), keys) {}

Async<Value> Ecs::call(std::string action, Parameters parameters, Effect effect, CancelToken token) {
  net::Parts parts = parts_for(url_, action);
  parts.query = {{"RegionId", region_}};
  for (auto& [key, value] : parameters) parts.query.emplace_back(std::move(key), std::move(value));
  co_return co_await api_.call(std::move(action), std::move(parts), effect, std::move(token));
}

Async<Value::Array> Ecs::rows_of(std::string action, Parameters parameters, const char* group, const char* row,
                                 CancelToken token) {
  Value::Array out;
  std::string next;
  for (int page = 0; page < pages_max; ++page) {
    Parameters asked = parameters;
    asked.emplace_back("MaxResults", "100");
    if (!next.empty()) asked.emplace_back("NextToken", next);
    RILLE_CO_TRY(const Value answer, co_await call(action, std::move(asked), Effect::none, token));
    const Value& rows = answer[group][row];
    if (!rows.as_array()) co_return net::not_theirs("alibaba", action);
    out.insert(out.end(), rows.as_array()->begin(), rows.as_array()->end());
    next = answer.text("NextToken");
    if (next.empty()) co_return out;
  }
  co_return make_error(ErrorKind::integrity,
                       fmt::format("Alibaba's answer to {} has more than {} pages, which is the most that Rille reads",
                                   action, pages_max),
                       "run it again; if it stays, report it as a bug of Rille");
}

namespace {

Offer read_type(const Value& v) {
  Offer offer;
  offer.id = v.text("InstanceTypeId");
  offer.vcpus = amounts::count(v.number("CpuCoreCount"));
  offer.memory_bytes = amounts::bytes(v.number("MemorySize"), amounts::gib);
  offer.gpu_count = amounts::count(v.number("GPUAmount"));
  if (offer.gpu_count > 0) {
    offer.gpu = gpu_model(v.text("GPUSpec"));
    offer.gpu_memory_bytes = amounts::bytes(v.number("GPUMemorySize"), amounts::gib);
  }
  // the API returns kbit/s without bursts
  offer.network_gbps = amounts::bounded(v.number("InstanceBandwidthTx") / 1e6, amounts::gbps_max);
  if (v.integer("EriQuantity") > 0) offer.rdma = "erdma";
  if (v.integer("LocalStorageAmount") == 0) offer.disk_kind = "network";
  else if (v.text("LocalStorageCategory").find("ssd") != std::string::npos) offer.disk_kind = "nvme";
  return offer;
}

}  // namespace

Async<std::vector<Offer>> Ecs::types(CancelToken token) {
  Parameters none;
  RILLE_CO_TRY(const Value::Array rows, co_await rows_of("DescribeInstanceTypes", std::move(none), "InstanceTypes",
                                                         "InstanceType", std::move(token)));
  std::vector<Offer> out;
  for (const Value& v : rows)
    if (net::lower_case(v.text("CpuArchitecture")) != "arm") out.push_back(read_type(v));
  co_return out;
}

// ECS's stock states: WithStock (enough), ClosedWithStock (little), WithoutStock and ClosedWithoutStock (none). A type
// that is missing from the response is not sold in the zone.
Async<std::set<std::string>> Ecs::in_stock(std::string zone, bool spot, CancelToken token) {
  Parameters asked{{"DestinationResource", "InstanceType"},
                   {"ResourceType", "instance"},
                   {"InstanceChargeType", "PostPaid"},
                   {"IoOptimized", "optimized"}};
  if (spot) asked.emplace_back("SpotStrategy", "SpotAsPriceGo");
  if (!zone.empty()) asked.emplace_back("ZoneId", zone);
  RILLE_CO_TRY(const Value answer, co_await call("DescribeAvailableResource", std::move(asked), Effect::none, token));
  if (!answer["AvailableZones"]["AvailableZone"].as_array())
    co_return net::not_theirs("alibaba", "DescribeAvailableResource");
  std::set<std::string> out;
  for (const Value& place : list_of(answer["AvailableZones"]["AvailableZone"]))
    for (const Value& kind : list_of(place["AvailableResources"]["AvailableResource"]))
      for (const Value& v : list_of(kind["SupportedResources"]["SupportedResource"]))
        if (v.text("Status") == "Available" && !v.text("StatusCategory").ends_with("WithoutStock"))
          out.insert(v.text("Value"));
  co_return out;
}

// Always sends the disk kind: ECS refuses to price a type that does not support its default, an older disk kind.
Async<cloud::Price> Ecs::price(std::string type, std::string disk_kind, bool spot, bool reserved, CancelToken token) {
  Parameters asked{
      {"ResourceType", "instance"}, {"InstanceType", type}, {"PriceUnit", "Hour"}, {"SystemDisk.Category", disk_kind}};
  // SpotDuration 0, as in create: no hour protected from preemption. ECS's default is one, which has another price.
  if (spot) asked.insert(asked.end(), {{"SpotStrategy", "SpotAsPriceGo"}, {"SpotDuration", "0"}});
  RILLE_CO_TRY(const Value answer, co_await call("DescribePrice", std::move(asked), Effect::none, token));
  const Value& said = answer["PriceInfo"]["Price"];
  cloud::Price out;
  out.currency = said.text("Currency");
  out.micros_per_hour = of_machine(said);
  if (!reserved) co_return out;
  for (const int years : {1, 3}) {
    Parameters term{{"ResourceType", "instance"},
                    {"InstanceType", type},
                    {"PriceUnit", "Year"},
                    {"Period", std::to_string(years)},
                    {"SystemDisk.Category", disk_kind}};
    const Result<Value> told = co_await call("DescribePrice", std::move(term), Effect::none, token);
    if (!told && token.cancelled()) co_return told.error();
    if (!told) continue;  // not sold with a commitment of `years`
    const Micros total = of_machine((*told)["PriceInfo"]["Price"]);
    (years == 1 ? out.reserved_1y : out.reserved_3y) = cloud::hourly_of(static_cast<double>(total) / 1e6, years);
  }
  co_return out;
}

Async<std::string> Ecs::run(Parameters parameters, std::int64_t send_by_wall_us, CancelToken token) {
  RILLE_CO_TRY(const Value answer,
               co_await call("RunInstances", std::move(parameters), Effect::lasting.by(send_by_wall_us), token));
  const Value::Array ids = list_of(answer["InstanceIdSets"]["InstanceIdSet"]);
  if (ids.empty() || !ids[0].as_string()) co_return net::not_theirs("alibaba", "RunInstances");
  co_return *ids[0].as_string();
}

Async<std::vector<Instance>> Ecs::describe(Parameters parameters, CancelToken token) {
  RILLE_CO_TRY(const Value::Array rows,
               co_await rows_of("DescribeInstances", std::move(parameters), "Instances", "Instance", std::move(token)));
  std::vector<Instance> out;
  for (const Value& v : rows) out.push_back(read_instance(v));
  co_return out;
}

Async<std::vector<Disk>> Ecs::disk_rows(Parameters parameters, CancelToken token) {
  RILLE_CO_TRY(const Value::Array rows,
               co_await rows_of("DescribeDisks", std::move(parameters), "Disks", "Disk", std::move(token)));
  std::vector<Disk> out;
  for (const Value& v : rows) out.push_back(read_disk(v));
  co_return out;
}

Async<std::vector<Disk>> Ecs::disks(CancelToken token) {
  Parameters asked{{"Tag.1.Key", tag_key}};
  return disk_rows(std::move(asked), std::move(token));
}

Async<std::vector<Disk>> Ecs::disks_of(std::string instance, CancelToken token) {
  Parameters asked{{"InstanceId", std::move(instance)}};
  return disk_rows(std::move(asked), std::move(token));
}

Async<std::optional<Disk>> Ecs::disk(std::string id, CancelToken token) {
  Parameters asked{{"DiskIds", "[\"" + id + "\"]"}};
  RILLE_CO_TRY(const std::vector<Disk> rows, co_await disk_rows(std::move(asked), std::move(token)));
  std::optional<Disk> out;
  for (const Disk& disk : rows)
    if (disk.id == id) out = disk;
  co_return out;
}

Async<std::string> Ecs::create_disk(Parameters parameters, std::int64_t send_by_wall_us, CancelToken token) {
  RILLE_CO_TRY(const Value answer,
               co_await call("CreateDisk", std::move(parameters), Effect::lasting.by(send_by_wall_us), token));
  if (answer.text("DiskId").empty()) co_return net::not_theirs("alibaba", "CreateDisk");
  co_return answer.text("DiskId");
}

Async<> Ecs::attach(std::string disk, std::string instance, CancelToken token) {
  Parameters asked{{"DiskId", disk}, {"InstanceId", instance}, {"DeleteWithInstance", "false"}};
  RILLE_CO_CHECK(co_await call("AttachDisk", std::move(asked), Effect::none, token));
  co_return success();
}

Async<cloud::Price> Ecs::disk_price(std::string kind, std::int64_t size_gb, CancelToken token) {
  Parameters asked{{"ResourceType", "disk"},
                   {"PriceUnit", "Hour"},
                   {"DataDisk.1.Category", kind},
                   {"DataDisk.1.Size", std::to_string(size_gb)}};
  RILLE_CO_TRY(const Value answer, co_await call("DescribePrice", std::move(asked), Effect::none, token));
  const Value& said = answer["PriceInfo"]["Price"];
  cloud::Price out;
  out.currency = said.text("Currency");
  out.micros_per_hour = micros_of(said["TradePrice"]);
  co_return out;
}

Async<> Ecs::delete_disk(std::string id, CancelToken token) {
  Parameters asked{{"DiskId", id}};
  auto answer = co_await call("DeleteDisk", std::move(asked), Effect::none, token);
  if (!answer && answer.error().http_status != 404) co_return answer.error();
  co_return success();
}

Async<> Ecs::terminate(std::string id, CancelToken token) {
  Parameters asked{{"InstanceId.1", id}, {"Force", "true"}};
  auto answer = co_await call("DeleteInstances", std::move(asked), Effect::none, token);
  if (!answer) co_return answer.error();
  co_return success();
}

Async<> Ecs::set_release(std::string id, std::int64_t wall_us, CancelToken token) {
  Parameters asked{{"InstanceId", id}, {"AutoReleaseTime", format_utc(wall_us)}};
  auto answer = co_await call("ModifyInstanceAutoReleaseTime", std::move(asked), Effect::none, token);
  if (!answer) co_return answer.error();
  co_return success();
}

// Stops the instance with KeepCharging: billing continues, so that Alibaba Cloud keeps the capacity reserved.
Async<> Ecs::stop(std::string id, CancelToken token) {
  Parameters asked{{"InstanceId", id}, {"StoppedMode", "KeepCharging"}};
  auto answer = co_await call("StopInstance", std::move(asked), Effect::none, token);
  if (!answer) co_return answer.error();
  co_return success();
}

Async<> Ecs::change_type(std::string id, std::string type, CancelToken token) {
  Parameters asked{{"InstanceId", id}, {"InstanceType", type}};
  auto answer = co_await call("ModifyInstanceSpec", std::move(asked), Effect::lasting, token);
  if (!answer) co_return answer.error();
  co_return success();
}

Async<> Ecs::start(std::string id, CancelToken token) {
  Parameters asked{{"InstanceId", id}};
  auto answer = co_await call("StartInstance", std::move(asked), Effect::none, token);
  if (!answer) co_return answer.error();
  co_return success();
}

Async<std::vector<PricePoint>> Ecs::spot_history(std::string type, std::int64_t since_us, CancelToken token) {
  constexpr std::int64_t back_us_max = 30LL * 86'400'000'000;  // ECS refuses an older start time
  since_us = std::max(since_us, api_.now_us() - back_us_max + 60'000'000);
  std::vector<PricePoint> out;
  std::int64_t offset = 0;
  for (int page = 0; page < pages_max; ++page) {
    Parameters asked{{"NetworkType", "vpc"},
                     {"InstanceType", type},
                     {"SpotDuration", "0"},
                     {"StartTime", format_utc(since_us)},
                     {"EndTime", format_utc(api_.now_us())},
                     {"Offset", std::to_string(offset)}};
    RILLE_CO_TRY(const Value answer, co_await call("DescribeSpotPriceHistory", std::move(asked), Effect::none, token));
    const Value::Array rows = list_of(answer["SpotPrices"]["SpotPriceType"]);
    for (const Value& v : rows) {
      PricePoint point;
      point.type = v.text("InstanceType");
      point.zone = v.text("ZoneId");
      point.currency = answer.text("Currency");
      point.from_wall_us = minute_of(v.text("Timestamp"));
      point.micros_per_hour = micros_of(v["SpotPrice"]);
      if (point.from_wall_us > 0 && point.micros_per_hour != price_unknown) out.push_back(std::move(point));
    }
    // The end is a page without rows or an offset that does not grow: even the last page may have a NextOffset.
    const std::int64_t next = answer.integer("NextOffset");
    if (rows.empty() || next <= offset) co_return out;
    offset = next;
  }
  co_return make_error(
      ErrorKind::integrity,
      fmt::format(
          "Alibaba's answer to DescribeSpotPriceHistory has more than {} pages, which is the most that Rille reads",
          pages_max),
      "run it again; if it stays, report it as a bug of Rille");
}

Async<std::vector<Quota>> Ecs::quotas(CancelToken token) {
  constexpr std::tuple<const char*, const char*, const char*> kinds[] = {
      {"by use, vCPUs", "max-postpaid-instance-vcpu-count", "used-postpaid-instance-vcpu-count"},
      {"spot, vCPUs", "max-spot-instance-vcpu-count", "used-spot-instance-vcpu-count"}};
  Parameters asked;
  for (const auto& [name, most, used] : kinds)
    for (const char* attribute : {most, used})
      asked.emplace_back(fmt::format("AttributeName.{}", asked.size() + 1), attribute);
  RILLE_CO_TRY(const Value answer, co_await call("DescribeAccountAttributes", std::move(asked), Effect::none, token));
  std::map<std::string, double> told;
  for (const Value& v : list_of(answer["AccountAttributeItems"]["AccountAttributeItem"])) {
    const Value::Array values = list_of(v["AttributeValues"]["ValueItem"]);
    if (!values.empty()) told[v.text("AttributeName")] = number_at(values[0].text("Value"));
  }
  std::vector<Quota> out;
  for (const auto& [name, most, used] : kinds) {
    if (!told.contains(most)) continue;
    Quota quota;
    quota.region = region_;
    quota.name = name;
    quota.limit = told[most];
    if (told.contains(used)) quota.used = told[used];
    out.push_back(std::move(quota));
  }
  co_return out;
}

}  // namespace rille::provider::alibaba
