#include "runtime/workflow/provider/aws/ec2.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "runtime/core/base/text.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/net/sign/aws.hpp"
#include "runtime/workflow/provider/amounts.hpp"
#include "runtime/workflow/provider/gpus.hpp"

namespace rille::provider::aws {

namespace {

using net::Effect;
using net::list_of;
using net::Trouble;

constexpr const char* version = "2016-11-15";
constexpr int pages_max = 200;

constexpr net::Meaning meanings[] = {
    {"InsufficientInstanceCapacity", Trouble::capacity},
    {"InsufficientHostCapacity", Trouble::capacity},
    {"InsufficientReservedInstanceCapacity", Trouble::capacity},
    {"InsufficientCapacityOnHost", Trouble::capacity},
    {"InsufficientFreeAddressesInSubnet", Trouble::capacity},
    {"UnfulfillableCapacity", Trouble::capacity},
    {"Unsupported", Trouble::capacity},
    {"SpotMaxPriceTooLow", Trouble::capacity, "the market price is above your maximum: raise max_price"},
    {"VcpuLimitExceeded", Trouble::quota, "ask for more vCPUs: Service Quotas, EC2, or take another region"},
    {"InstanceLimitExceeded", Trouble::quota, "ask for more: Service Quotas, EC2, or take another region"},
    {"MaxSpotInstanceCountExceeded", Trouble::quota, "ask for more spot vCPUs: Service Quotas, EC2"},
    {"VolumeLimitExceeded", Trouble::quota},
    {"SecurityGroupLimitExceeded", Trouble::quota,
     "each machine or cluster gets a security group: name an existing one as `security_group`"},
    {"AddressLimitExceeded", Trouble::quota},
    {"NetworkInterfaceLimitExceeded", Trouble::quota},
    {"ResourceLimitExceeded", Trouble::quota},
    {"PendingVerification", Trouble::quota, "Amazon is verifying the account: this takes some hours"},
    {"OptInRequired", Trouble::quota, "the account has to accept this region or product first"},
    {"EC2ThrottledException", Trouble::throttle},
    {"AuthFailure.ServiceLinkedRoleCreationNotPermitted", Trouble::auth,
     "this account's first spot machine needs a service-linked role, which these keys may not create: once, as an "
     "admin: aws iam "
     "create-service-linked-role --aws-service-name spot.amazonaws.com"},
    {"UnauthorizedOperation", Trouble::auth, "the keys lack a permission: rille doctor --provider aws --policy"},
    {"AccessDenied*", Trouble::auth, "the keys lack a permission: rille doctor --provider aws --policy"},
    {"IncorrectInstanceState", Trouble::conflict},
    {"UnsupportedOperation", Trouble::conflict},
    {"IdempotentParameterMismatch", Trouble::conflict},
    {"IdempotentInstanceTerminated", Trouble::capacity},
    {"InvalidInstanceID.NotFound", Trouble::not_found},
    {"InvalidVolume.NotFound", Trouble::not_found},
    {"InvalidGroup.NotFound", Trouble::not_found},
    {"InvalidGroupId.Malformed", Trouble::not_found},
    {"InvalidPlacementGroup.Unknown", Trouble::not_found},
    {"InvalidPlacementGroup.InUse", Trouble::conflict},
    {"InvalidPlacementGroup.Duplicate", Trouble::conflict},
    {"PlacementGroupLimitExceeded", Trouble::quota,
     "each cluster with EFA gets a placement group: request more: Service Quotas, EC2"},
    {"DependencyViolation", Trouble::conflict},
    {"VolumeInUse", Trouble::conflict, "an instance has the volume: release that instance first"},
    {"ReservationCapacityExceeded", Trouble::capacity, "the configured reservation is in use, or of another type"},
};

double number_of(const Value& v, const char* key) { return number_at(v.text(key)); }

// Reads "User initiated (2026-11-22 16:55:00 GMT)" as the end of that second, in microseconds; 0: no time in it.
std::int64_t transition_of(const std::string& reason) {
  const std::size_t at = reason.rfind('(');
  if (at == std::string::npos || reason.size() < at + 20) return 0;
  const Result<std::int64_t> when = parse_utc(reason.substr(at + 1, 10) + "T" + reason.substr(at + 12, 8) + "Z");
  return when ? *when + 1'000'000 : 0;
}

Instance read_instance(const Value& v) {
  Instance out;
  out.id = v.text("instanceId");
  out.state = v["instanceState"].text("name");
  out.tag = tag_in(v["tagSet"]);
  out.cluster = tag_in(v["tagSet"], cluster_key);
  out.token = v.text("clientToken");
  out.zone = v["placement"].text("availabilityZone");
  out.type = v.text("instanceType");
  out.address = v.text("ipAddress");
  out.private_address = v.text("privateIpAddress");
  out.reason = v["stateReason"].text("code");
  out.spot = v.text("instanceLifecycle") == "spot";
  for (const Value& tag : list_of(v["tagSet"]))
    if (const std::string key = tag.text("key"); key.starts_with(mount_key))
      out.volumes[key.substr(std::string_view(mount_key).size())] = tag.text("value");
  for (const Value& disk : list_of(v["blockDeviceMapping"]))
    if (disk["ebs"].text("status") == "attached") out.disks.push_back(disk["ebs"].text("volumeId"));
  if (const Result<std::int64_t> launched = parse_utc(v.text("launchTime"))) out.launched_wall_us = *launched;
  if (out.state == "shutting-down" || out.state == "terminated") out.ended_wall_us = transition_of(v.text("reason"));
  return out;
}

Micros micros_of(const std::string& dollars) { return cloud::micros_of(number_at(dollars)); }

// Gbit/s of "100 Gigabit" or "4x 100 Gigabit"; 0 for "Up to 10 Gigabit" and "High", which guarantee nothing.
double network_of(const std::string& words) {
  std::string_view rest;
  double times = 1, each = number_at(words, &rest);
  if (rest.starts_with('x')) times = std::exchange(each, number_at(rest.substr(1), &rest));
  return rest == " Gigabit" ? amounts::bounded(times * each, amounts::gbps_max) : 0;
}

// The number of network cards with EFA, at most one adapter per card; at least 1 if the type supports EFA at all.
int efa_cards_of(const Value& network) {
  if (network.text("efaSupported") != "true") return 0;
  const double most =
      std::min(number_of(network["efaInfo"], "maximumEfaInterfaces"), number_of(network, "maximumNetworkCards"));
  return std::max(1, amounts::count(most, 64));
}

InstanceType read_type(const Value& v) {
  InstanceType out;
  out.name = v.text("instanceType");
  out.vcpus = amounts::count(number_of(v["vCpuInfo"], "defaultVCpus"));
  out.memory_bytes = amounts::bytes(number_of(v["memoryInfo"], "sizeInMiB"), amounts::mib);
  for (const Value& use : list_of(v["supportedUsageClasses"]))
    out.spot = out.spot || (use.as_string() && *use.as_string() == "spot");
  out.network_gbps = network_of(v["networkInfo"].text("networkPerformance"));
  out.efa_cards = efa_cards_of(v["networkInfo"]);
  out.own_disk = v.text("instanceStorageSupported") == "true";
  out.xen = v.text("hypervisor") == "xen";
  const Value::Array gpus = list_of(v["gpuInfo"]["gpus"]);
  if (gpus.empty()) return out;
  out.gpu = gpu_model(gpus[0].text("name"));
  out.gpu_count = amounts::count(number_of(gpus[0], "count"));
  out.gpu_memory_bytes = amounts::bytes(number_of(gpus[0]["memoryInfo"], "sizeInMiB"), amounts::mib);
  return out;
}

}  // namespace

std::string tag_in(const Value& tags, const char* key) {
  for (const Value& tag : list_of(tags))
    if (tag.text("key") == key) return tag.text("value");
  return "";
}

net::ApiOptions api_options(const std::string& region, const char* service, bool json) {
  net::ApiOptions out = net::aws::api_options(region, service, json);
  out.meanings = meanings;
  return out;
}

Ec2::Ec2(Loop& loop, net::CredentialChain& keys, std::string region, const Value& endpoints)
    : region_(std::move(region)),
      ec2_(endpoints.text("ec2", fmt::format("https://ec2.{}.{}", region_, domain_of(region_)))),
      pricing_(endpoints.text("pricing", "https://api.pricing.us-east-1.amazonaws.com")),
      api_(loop, api_options(region_, "ec2", false), keys),
      pricing_api_(loop, api_options("us-east-1", "pricing", true), keys) {}

Async<Value> Ec2::call(std::string action, Parameters parameters, Effect effect, CancelToken token) {
  net::Query form{{"Action", action}, {"Version", version}};
  for (auto& [key, value] : parameters) form.emplace_back(std::move(key), std::move(value));
  net::Parts parts = parts_for(ec2_);
  parts.headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
  parts.body = net::join_query(form);
  co_return co_await api_.call(std::move(action), std::move(parts), effect, std::move(token));
}

// Requests all pages of a list action and joins their rows; `list`: the response field that holds the rows.
Async<Value> Ec2::page_through(std::string action, Parameters parameters, std::string list, CancelToken token) {
  Value::Array all;
  std::string next;
  for (int page = 0; page < pages_max; ++page) {
    Parameters asked = parameters;
    if (!next.empty()) asked.emplace_back("NextToken", next);
    RILLE_CO_TRY(const Value answer, co_await call(action, std::move(asked), Effect::none, token));
    if (answer[list].is_null()) co_return net::not_theirs("aws", action);  // even an empty list has the field
    for (Value& item : list_of(answer[list])) all.push_back(std::move(item));
    next = answer.text("nextToken");
    if (next.empty()) co_return Value(std::move(all));
  }
  co_return make_error(
      ErrorKind::integrity,
      fmt::format("AWS's answer to {} has more than {} pages, which is the most that Rille reads", action, pages_max),
      "run it again; if it stays, report it as a bug of Rille");
}

Async<std::vector<InstanceType>> Ec2::types(CancelToken token) {
  Parameters asked{{"MaxResults", "100"},
                   {"Filter.1.Name", "processor-info.supported-architecture"},
                   {"Filter.1.Value.1", "x86_64"},
                   {"Filter.2.Name", "current-generation"},
                   {"Filter.2.Value.1", "true"}};
  RILLE_CO_TRY(const Value all,
               co_await page_through("DescribeInstanceTypes", std::move(asked), "instanceTypeSet", token));
  std::vector<InstanceType> out;
  for (const Value& v : *all.as_array()) {
    const Value::Array gpus = list_of(v["gpuInfo"]["gpus"]);
    const bool others = !gpus.empty() && gpus[0].text("manufacturer") != "NVIDIA";  // types with AMD or Habana GPUs
    if (!others) out.push_back(read_type(v));
  }
  co_return out;
}

Async<std::map<std::string, Ec2::ZonePrices>> Ec2::spot_prices(std::vector<std::string> types, CancelToken token) {
  const std::string now = format_utc(api_.now_us());
  Parameters asked{{"ProductDescription.1", "Linux/UNIX"},
                   {"ProductDescription.2", "Linux/UNIX (Amazon VPC)"},
                   {"StartTime", now},
                   {"EndTime", now}};
  for (std::size_t i = 0; i < types.size(); ++i) asked.emplace_back(fmt::format("InstanceType.{}", i + 1), types[i]);
  RILLE_CO_TRY(const Value all,
               co_await page_through("DescribeSpotPriceHistory", std::move(asked), "spotPriceHistorySet", token));
  std::map<std::string, ZonePrices> out;
  for (const Value& v : *all.as_array()) {
    const Micros price = micros_of(v.text("spotPrice"));
    if (price == price_unknown) continue;
    const auto [at, fresh] = out[v.text("instanceType")].emplace(v.text("availabilityZone"), price);
    if (!fresh) at->second = std::min(at->second, price);
  }
  co_return out;
}

Async<std::vector<PricePoint>> Ec2::spot_history(std::vector<std::string> types, std::int64_t since_us,
                                                 CancelToken token) {
  Parameters asked{{"ProductDescription.1", "Linux/UNIX"},
                   {"ProductDescription.2", "Linux/UNIX (Amazon VPC)"},
                   {"StartTime", format_utc(since_us)},
                   {"EndTime", format_utc(api_.now_us())}};
  for (std::size_t i = 0; i < types.size(); ++i) asked.emplace_back(fmt::format("InstanceType.{}", i + 1), types[i]);
  RILLE_CO_TRY(const Value all,
               co_await page_through("DescribeSpotPriceHistory", std::move(asked), "spotPriceHistorySet", token));
  std::vector<PricePoint> out;
  for (const Value& v : *all.as_array()) {
    PricePoint point;
    point.type = v.text("instanceType");
    point.zone = v.text("availabilityZone");
    point.micros_per_hour = micros_of(v.text("spotPrice"));
    const Result<std::int64_t> from = parse_utc(v.text("timestamp"));
    if (from) point.from_wall_us = *from;
    if (from && point.micros_per_hour != price_unknown) out.push_back(std::move(point));
  }
  co_return out;
}

Async<Instance> Ec2::run(Parameters parameters, std::int64_t send_by_wall_us, CancelToken token) {
  RILLE_CO_TRY(const Value answer,
               co_await call("RunInstances", std::move(parameters), Effect::lasting.by(send_by_wall_us), token));
  const Value::Array made = list_of(answer["instancesSet"]);
  if (made.empty() || made[0].text("instanceId").empty()) co_return net::not_theirs("aws", "RunInstances");
  co_return read_instance(made[0]);
}

Async<std::vector<Instance>> Ec2::describe(Parameters parameters, CancelToken token) {
  RILLE_CO_TRY(const Value all,
               co_await page_through("DescribeInstances", std::move(parameters), "reservationSet", token));
  std::vector<Instance> out;
  for (const Value& reservation : *all.as_array())
    for (const Value& v : list_of(reservation["instancesSet"])) out.push_back(read_instance(v));
  co_return out;
}

Async<> Ec2::terminate(std::string id, CancelToken token) {
  Parameters asked{{"InstanceId.1", id}};
  auto answer = co_await call("TerminateInstances", std::move(asked), Effect::none, token);
  if (!answer && answer.error().http_status == 404) co_return success();
  if (!answer) co_return answer.error();
  for (const Value& ended : list_of((*answer)["instancesSet"]))
    if (ended.text("instanceId") == id) co_return success();
  co_return net::not_theirs("aws", "TerminateInstances");
}

// stop, change_type and start are idempotent.
Async<> Ec2::stop(std::string id, CancelToken token) {
  Parameters asked{{"InstanceId.1", id}};
  auto answer = co_await call("StopInstances", std::move(asked), Effect::none, token);
  if (!answer) co_return answer.error();
  co_return success();
}

Async<> Ec2::change_type(std::string id, std::string type, CancelToken token) {
  Parameters asked{{"InstanceId", id}, {"InstanceType.Value", type}};
  auto answer = co_await call("ModifyInstanceAttribute", std::move(asked), Effect::none, token);
  if (!answer) co_return answer.error();
  co_return success();
}

Async<> Ec2::start(std::string id, CancelToken token) {
  Parameters asked{{"InstanceId.1", id}};
  auto answer = co_await call("StartInstances", std::move(asked), Effect::none, token);
  if (!answer) co_return answer.error();
  co_return success();
}

namespace {
Disk read_disk(const Value& v) {
  Disk out;
  out.id = v.text("volumeId");
  out.tag = tag_in(v["tagSet"]);
  out.state = v.text("status");
  out.zone = v.text("availabilityZone");
  out.is_volume = !tag_in(v["tagSet"], volume_key).empty();
  return out;
}
}  // namespace

Async<std::vector<Disk>> Ec2::disks(CancelToken token) {
  Parameters asked{{"Filter.1.Name", "tag-key"}, {"Filter.1.Value.1", tag_key}};
  RILLE_CO_TRY(const Value all, co_await page_through("DescribeVolumes", std::move(asked), "volumeSet", token));
  std::vector<Disk> out;
  for (const Value& v : *all.as_array()) out.push_back(read_disk(v));
  co_return out;
}

Async<std::optional<Disk>> Ec2::disk(std::string id, CancelToken token) {
  std::optional<Disk> out;
  Parameters asked{{"VolumeId.1", id}};
  const Result<Value> all = co_await page_through("DescribeVolumes", std::move(asked), "volumeSet", token);
  if (!all && all.error().http_status == 404) co_return out;
  if (!all) co_return all.error();
  for (const Value& v : *all->as_array())
    if (v.text("volumeId") == id) out = read_disk(v);
  if (!out) co_return net::not_theirs("aws", "DescribeVolumes");
  // Without its tags it may still be a volume, whose data must not count as gone.
  out->is_volume = out->is_volume || out->tag.empty();
  co_return out;
}

Async<Disk> Ec2::create_disk(Parameters parameters, std::int64_t send_by_wall_us, CancelToken token) {
  RILLE_CO_TRY(const Value answer,
               co_await call("CreateVolume", std::move(parameters), Effect::lasting.by(send_by_wall_us), token));
  if (answer.text("volumeId").empty()) co_return net::not_theirs("aws", "CreateVolume");
  co_return read_disk(answer);
}

Async<> Ec2::attach(std::string disk, std::string instance, std::string device, CancelToken token) {
  Parameters asked{{"VolumeId", disk}, {"InstanceId", instance}, {"Device", device}};
  RILLE_CO_CHECK(co_await call("AttachVolume", std::move(asked), Effect::none, token));
  co_return success();
}

Async<std::vector<std::string>> Ec2::zones(CancelToken token) {
  Parameters asked{{"Filter.1.Name", "zone-type"},
                   {"Filter.1.Value.1", "availability-zone"},
                   {"Filter.2.Name", "state"},
                   {"Filter.2.Value.1", "available"}};
  RILLE_CO_TRY(const Value answer, co_await call("DescribeAvailabilityZones", std::move(asked), Effect::none, token));
  std::vector<std::string> out;
  for (const Value& zone : list_of(answer["availabilityZoneInfo"])) out.push_back(zone.text("zoneName"));
  std::sort(out.begin(), out.end());
  if (out.empty()) co_return net::not_theirs("aws", "DescribeAvailabilityZones");
  co_return out;
}

Async<> Ec2::delete_disk(std::string id, CancelToken token) {
  Parameters asked{{"VolumeId", id}};
  auto answer = co_await call("DeleteVolume", std::move(asked), Effect::none, token);
  if (!answer && answer.error().http_status != 404) co_return answer.error();
  co_return success();
}

Async<Ec2::Image> Ec2::image(std::string id, CancelToken token) {
  Parameters asked{{"ImageId.1", id}};
  RILLE_CO_TRY(const Value answer, co_await call("DescribeImages", std::move(asked), Effect::none, token));
  for (const Value& v : list_of(answer["imagesSet"]))
    if (v.text("imageId") == id) co_return Image{id, v.text("rootDeviceName", "/dev/sda1")};
  co_return make_error(ErrorKind::config, fmt::format("region {} has no image {}", region_, id),
                       "images are regional: name one of that region, or none");
}

Async<Ec2::Image> Ec2::image(std::string owner, std::string name_pattern, CancelToken token) {
  Parameters asked{{"Owner.1", owner},
                   {"Filter.1.Name", "name"},
                   {"Filter.1.Value.1", name_pattern},
                   {"Filter.2.Name", "state"},
                   {"Filter.2.Value.1", "available"}};
  RILLE_CO_TRY(const Value answer, co_await call("DescribeImages", std::move(asked), Effect::none, token));
  if (answer["imagesSet"].is_null()) co_return net::not_theirs("aws", "DescribeImages");
  Image best;
  std::string newest;
  for (const Value& v : list_of(answer["imagesSet"]))
    if (v.text("creationDate") >= newest)
      newest = v.text("creationDate"), best = {v.text("imageId"), v.text("rootDeviceName", "/dev/sda1")};
  if (best.id.empty())
    co_return make_error(ErrorKind::config,
                         fmt::format("region {} has no image '{}' of {}", region_, name_pattern, owner),
                         "name one in the provider's settings: \"image\": \"ami-..\"");
  co_return best;
}

}  // namespace rille::provider::aws
