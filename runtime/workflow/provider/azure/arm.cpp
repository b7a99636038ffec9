#include "runtime/workflow/provider/azure/arm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/net/credentials/bearer.hpp"
#include "runtime/workflow/provider/amounts.hpp"
#include "runtime/workflow/provider/cloud/prices.hpp"
#include "runtime/workflow/provider/cloud/wait.hpp"

namespace rille::provider::azure {

namespace {

using net::Effect;
using net::list_of;
using net::Trouble;

constexpr int pages_max = 200;
constexpr std::int64_t create_patience_ms = 300'000, part_patience_ms = 60'000, remove_patience_ms = 180'000;
constexpr const char* operation_field =
    "$operation";  // Rille adds this field to a successful response: URL where the operation's outcome can be polled

constexpr net::Meaning meanings[] = {
    {"AllocationFailed", Trouble::capacity},
    {"ZonalAllocationFailed", Trouble::capacity},
    {"OverconstrainedAllocationRequest", Trouble::capacity},
    {"OverconstrainedZonalAllocationRequest", Trouble::capacity},
    {"SkuNotAvailable", Trouble::capacity},
    {"NotAvailableForSubscription", Trouble::capacity},
    {"SpotPriceGreaterThanProvidedMaxPrice", Trouble::capacity,
     "the market is above what you pay at most: raise max_price"},
    {"AzureSpotFeatureNotEnabledForSubscription", Trouble::capacity, "this subscription may not rent spot machines"},
    {"VMPriorityCannotBeApplied", Trouble::capacity},
    {"OperationNotAllowed", Trouble::quota, "ask for more on the portal's quota page, or take another region"},
    {"OperationNotAllowed.*", Trouble::conflict},
    {"QuotaExceeded", Trouble::quota, "ask for more on the portal's quota page, or take another region"},
    {"TooManyRequests", Trouble::throttle},
    {"RetryableErrorDueToAnotherOperation", Trouble::throttle},
    {"InternalServerError*", Trouble::transient},
    {"InternalExecutionError", Trouble::transient},
    {"InternalOperationError", Trouble::transient},
    {"OperationTimedOut", Trouble::transient},
    {"ExpiredAuthenticationToken", Trouble::expired},
    {"InvalidAuthenticationToken", Trouble::expired},
    {"AuthorizationFailed", Trouble::auth, "rille doctor --provider azure --policy prints the required role"},
    {"RequestDisallowedByPolicy", Trouble::auth, "a policy of the subscription forbids it"},
    {"ReadOnlyDisabledSubscription", Trouble::auth, "the subscription is disabled"},
    {"PropertyChangeNotAllowed", Trouble::conflict},
    {"ConflictingUserInput", Trouble::conflict},
    {"AttachDiskWhileBeingDetached", Trouble::conflict},
    {reserved_code, Trouble::conflict, "Azure frees it after three minutes"},
    {"PublicIPAddressCannotBeDeleted", Trouble::conflict, "the network interface that uses it must be deleted first"},
    {"InUseNetworkSecurityGroupCannotBeDeleted", Trouble::conflict,
     "the network interface that uses it must be deleted first"},
};

net::Answer read_answer(const net::HttpResponse& response) {
  net::Answer out;
  out.request_id = response.header("x-ms-request-id");
  if (Result<Value> value = Value::from_json(response.body)) out.value = std::move(*value);
  if (response.ok()) {
    out.foreign = !response.body.empty() && !out.value.as_object();
    if (const std::string url = response.header("azure-asyncoperation"); !url.empty())
      out.value.set(operation_field, url);
    return out;
  }
  const Value& error = out.value["error"].is_null() ? out.value["Error"] : out.value["error"];  // price API: "Error"
  out.foreign = !error.as_object();
  out.code = error.text("code", error.text("Code"));
  out.message = error.text("message", error.text("Message"));
  // Azure uses OperationNotAllowed for a missing quota and for a wrong state; only the first message says "quota".
  if (out.code == "OperationNotAllowed" && out.message.find("uota") == std::string::npos) out.code += ".State";
  return out;
}

net::ApiOptions options(bool with_token) {
  net::ApiOptions out;
  out.provider = "azure";
  out.meanings = meanings;
  out.read = read_answer;
  out.sign = [with_token](net::Parts parts, const net::Credentials& who, std::int64_t) {
    return with_token ? net::bear_token(std::move(parts), who) : parts;
  };
  return out;
}

net::Parts parts_of(const std::string& url) {
  const std::size_t host = url.find("://") + 3, path = url.find('/', host);
  const std::size_t question = std::min(url.find('?', path), url.size());
  net::Parts out;
  out.scheme = url.substr(0, host - 3);
  out.host = url.substr(host, path - host);
  out.path = url.substr(path, question - path);
  for (std::size_t at = question + 1; at < url.size();) {
    const std::size_t end = std::min(url.find('&', at), url.size());
    const std::string one = url.substr(at, end - at);
    const std::size_t equals = std::min(one.find('='), one.size());
    std::string value = equals < one.size() ? one.substr(equals + 1) : "";
    std::replace(value.begin(), value.end(), '+', ' ');  // '+' means a space; a real plus sign is %2B
    out.query.emplace_back(net::percent_decode(one.substr(0, equals)), net::percent_decode(value));
    at = end + 1;
  }
  return out;
}

// GPU model and memory of a size, found by words of the size's name:
// https://learn.microsoft.com/azure/virtual-machines/sizes/overview
struct Family {
  const char *words, *gpu;
  std::int64_t gib;
};
constexpr Family families[] = {{"_T4_", "T4", 16},
                               {"_A10_", "A10", 24},
                               {"NC40ads_H100", "H100 NVL", 94},
                               {"NC80adis_H100", "H100 NVL", 94},
                               {"_H100_", "H100", 80},
                               {"_H200_", "H200", 141},
                               {"_MI300X_", "MI300X", 192},
                               {"ND96asr_v4", "A100", 40},
                               {"_A100_", "A100", 80},
                               {"ND40rs_v2", "V100", 32},
                               {"NV12s_v3", "M60", 8},
                               {"NV24s_v3", "M60", 8},
                               {"NV48s_v3", "M60", 8},
                               {"NC6s_v3", "V100", 16},
                               {"NC12s_v3", "V100", 16},
                               {"NC24s_v3", "V100", 16},
                               {"NC24rs_v3", "V100", 16}};
constexpr int vcpus_per_a10 = 36;  // a size with fewer vCPUs has only a fraction of an A10

// Sets the offer's GPU fields. False: the size has only a fraction of a GPU and is not offered.
bool read_gpus(Offer& offer, int count) {
  offer.gpu_count = count;
  if (count == 0) return true;
  for (const Family& f : families) {
    if (offer.id.find(f.words) == std::string::npos) continue;
    offer.gpu = f.gpu;
    offer.gpu_memory_bytes = f.gib << 30;
    return offer.gpu != "A10" || offer.vcpus >= vcpus_per_a10 * count;
  }
  offer.gpu = offer.id;  // unknown family: the size's name stands for the GPU model
  return true;
}

// zone "": any. A size that names no zones of the region is sold without regard to them.
bool is_sold(const Value& sku, const std::string& region, const std::string& zone) {
  for (const Value& place : list_of(sku["locationInfo"])) {
    const Value::Array zones = list_of(place["zones"]);
    const auto is_it = [&zone](const Value& z) { return z.as_string() && *z.as_string() == zone; };
    if (zone.empty() || zones.empty() || net::lower_case(place.text("location")) != region) continue;
    if (std::none_of(zones.begin(), zones.end(), is_it)) return false;
  }
  for (const Value& r : list_of(sku["restrictions"])) {
    if (r.text("type") == "Location") return false;
    for (const Value& z : list_of(r["restrictionInfo"]["zones"]))
      if (z.as_string() && *z.as_string() == zone) return false;
  }
  return true;
}

}  // namespace

Arm::Arm(Loop& loop, net::CredentialChain& keys, std::string region, const std::string& subscription,
         const std::string& group, const Value& endpoints)
    : loop_(loop), region_(std::move(region)), base_url_(endpoints.text("management", "https://management.azure.com")),
      subscription_path_("/subscriptions/" + subscription),
      group_path_(subscription_path_ + "/resourceGroups/" + group),
      prices_url_(endpoints.text("prices", "https://prices.azure.com")), nobody_(loop, "azure", net::no_keys(), ""),
      api_(loop, options(true), keys), prices_api_(loop, options(false), nobody_) {}

std::string Arm::path_of(std::string_view kind) const {
  const bool compute = kind == machines || kind == disks;
  return fmt::format("{}/providers/Microsoft.{}/{}", group_path_, compute ? "Compute" : "Network", kind);
}

std::string Arm::id_of(std::string_view kind, const std::string& name) const { return path_of(kind) + "/" + name; }

namespace {
const char* version_of(std::string_view kind) {
  return kind == machines ? "2024-07-01" : kind == disks ? "2023-10-02" : "2023-09-01";
}
}  // namespace

// Every call of this API may be repeated: the path identifies the resource, and a second identical PUT changes nothing.
Async<Value> Arm::call(std::string method, std::string url, Value body, CancelToken token, Effect effect) {
  // `url` may be a link from a response. Refuse another host: it would receive the access token.
  if (!url.starts_with(base_url_ + "/"))
    co_return make_error(
        ErrorKind::integrity, "Azure's response links to another host: " + url.substr(0, url.find('?')),
        "the link was not followed, to protect your keys; is a proxy changing responses? Else report it");
  net::Parts parts = parts_of(url);
  parts.method = method;
  if (body.as_object()) {
    parts.headers = {{"Content-Type", "application/json"}};
    parts.body = to_plain_json(body);
  }
  std::string operation = method + " " + parts.path;
  co_return co_await api_.call(std::move(operation), std::move(parts), effect, std::move(token));
}

Async<Value::Array> Arm::pages(std::string url, CancelToken token) {
  Value::Array out;
  for (int page = 0; page < pages_max; ++page) {
    RILLE_CO_TRY(const Value answer, co_await call("GET", url, Value(), token));
    if (!answer["value"].as_array()) co_return net::not_theirs("azure", "GET " + parts_of(url).path);
    for (const Value& row : *answer["value"].as_array()) out.push_back(row);
    url = answer.text("nextLink");
    if (url.empty()) co_return out;
  }
  co_return make_error(
      ErrorKind::integrity,
      fmt::format("a list in Azure's answer has more than {} pages, which is the most that Rille reads", pages_max),
      "run it again; if it stays, report it as a bug of Rille");
}

Async<std::vector<Offer>> Arm::sizes(std::string zone, bool spot, Needs need, CancelToken token) {
  std::string url = base_url_ + subscription_path_ +
                    "/providers/Microsoft.Compute/skus?api-version=2021-07-01&$filter=" +
                    net::percent_encode("location eq '" + region_ + "'");
  RILLE_CO_TRY(const Value::Array rows, co_await pages(std::move(url), token));
  std::vector<Offer> out;
  for (const Value& v : rows) {
    if (v.text("resourceType") != machines || !is_sold(v, region_, zone)) continue;
    Offer offer;
    offer.id = v.text("name");
    int gpus = 0;
    bool interruptible = false, confidential = offer.id.starts_with("Standard_NCC"), fits = true;
    for (const Value& c : list_of(v["capabilities"])) {
      const std::string name = c.text("name"), value = c.text("value");
      if (name == "vCPUs") offer.vcpus = amounts::count(number_at(value));
      else if (name == "MemoryGB") offer.memory_bytes = amounts::bytes(number_at(value), amounts::gib);
      else if (name == "GPUs") gpus = amounts::count(number_at(value), amounts::gpus_max);
      else if (name == "LowPriorityCapable") interruptible = value == "True";
      else if (name == "CpuArchitectureType" && value != "x64") fits = false;
      else if (name == "PremiumIO" && value != "True" && need.premium_disk) fits = false;
      else if (name == "HyperVGenerations" && need.generation_2 && value.find("V2") == value.npos) fits = false;
      else if (name == "ConfidentialComputingType") confidential = true;  // not offered: needs a security profile
      else if (name == "RdmaEnabled" && value == "True") offer.rdma = "infiniband";
      else if (name == "NvmeDiskSizeInMiB" && number_at(value) > 0) offer.disk_kind = "nvme";
      else if (name == "MaxResourceVolumeMB" && value == "0" && offer.disk_kind.empty()) offer.disk_kind = "network";
    }
    if (fits && !confidential && read_gpus(offer, gpus) && (interruptible || !spot)) out.push_back(std::move(offer));
  }
  co_return out;
}

Async<Prices> Arm::prices(std::string size, CancelToken token) {
  net::Parts parts = parts_of(prices_url_ + "/api/retail/prices");
  parts.query = {{"api-version", "2023-01-01-preview"},
                 {"$filter", fmt::format("serviceName eq 'Virtual Machines' and armRegionName eq '{}' and "
                                         "armSkuName eq '{}'",
                                         region_, size)}};
  RILLE_CO_TRY(const Value answer, co_await prices_api_.call("retail prices", std::move(parts), Effect::none, token));
  Prices out;
  if (!answer["Items"].as_array()) co_return net::not_theirs("azure", "retail prices");
  for (const Value& row : *answer["Items"].as_array()) {
    const std::string sku = row.text("skuName"), type = row.text("type"), term = row.text("reservationTerm");
    if (row.text("productName").find("Windows") != std::string::npos || row.text("currencyCode") != "USD" ||
        sku.find("Low Priority") != std::string::npos)
      continue;
    const int years = type != "Reservation" ? 0 : term == "1 Year" ? 1 : term == "3 Years" ? 3 : -1;
    if (years < 0 || (years == 0 && (type != "Consumption" || row.text("unitOfMeasure") != "1 Hour"))) continue;
    // A reservation's price is for the whole term, even though unitOfMeasure says "1 Hour".
    const double price = row.number("retailPrice");
    const Micros micros = years > 0 ? cloud::hourly_of(price, years) : cloud::micros_of(price);
    if (micros == price_unknown) continue;
    Micros& known = years == 1                               ? out.reserved_1y
                    : years == 3                             ? out.reserved_3y
                    : sku.find(" Spot") != std::string::npos ? out.spot
                                                             : out.on_demand;
    known = known == price_unknown ? micros : std::min(known, micros);
  }
  co_return out;
}

// Reads Resource Graph's table of spot prices, which has one row per size with its price changes of the last 90 days.
// https://learn.microsoft.com/azure/virtual-machines/spot-vms#azure-resource-graph
Async<std::vector<PricePoint>> Arm::spot_history(std::vector<std::string> sizes, std::int64_t since_us,
                                                 CancelToken token) {
  std::string names;
  for (const std::string& size : sizes) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", size);
  Value options, asked;
  options.set("resultFormat", "objectArray");
  asked.set("subscriptions", Value::Array{Value(subscription_path_.substr(subscription_path_.rfind('/') + 1))});
  asked.set("query",
            fmt::format("SpotResources | where type =~ 'microsoft.compute/skuspotpricehistory/ostype/location' "
                        "| where sku.name in~ ({}) | where properties.osType =~ 'linux' | where location =~ '{}' "
                        "| project sku = tostring(sku.name), prices = properties.spotPrices",
                        names, region_));
  const std::string url = base_url_ + "/providers/Microsoft.ResourceGraph/resources?api-version=2021-03-01";
  std::vector<PricePoint> out;
  for (int page = 0;; ++page) {
    if (page == pages_max)
      co_return make_error(
          ErrorKind::integrity,
          fmt::format("Azure's answer from Resource Graph has more than {} pages, which is the most that Rille reads",
                      pages_max),
          "run it again; if it stays, report it as a bug of Rille");
    Value body = asked;
    body.set("options", options);
    RILLE_CO_TRY(const Value answer, co_await call("POST", url, std::move(body), token));
    if (!answer["data"].as_array()) co_return net::not_theirs("azure", "Resource Graph");
    for (const Value& row : *answer["data"].as_array()) {
      const auto size = std::find_if(sizes.begin(), sizes.end(), [&row](const std::string& s) {
        return net::lower_case(s) == net::lower_case(row.text("sku"));
      });
      if (size == sizes.end()) continue;
      std::optional<PricePoint> before;
      for (const Value& one : list_of(row["prices"])) {
        const Result<std::int64_t> from_us = parse_utc(one.text("effectiveDate"));
        PricePoint point;
        point.type = *size;
        point.currency = "USD";
        point.micros_per_hour = cloud::micros_of(one.number("priceUSD"));
        if (!from_us || point.micros_per_hour == price_unknown) continue;
        point.from_wall_us = *from_us;
        if (*from_us >= since_us) out.push_back(std::move(point));
        else if (!before || before->from_wall_us < *from_us) before = std::move(point);
      }
      if (!before) continue;
      before->from_wall_us = since_us;
      out.push_back(*before);
    }
    const std::string next = answer.text("$skipToken");
    if (next.empty()) break;
    options.set("$skipToken", next);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const PricePoint& a, const PricePoint& b) { return a.from_wall_us < b.from_wall_us; });
  co_return out;
}

Async<> Arm::finished(Value answer, std::int64_t limit_ms, CancelToken token) {
  const std::string url = answer.text(operation_field);
  if (url.empty()) co_return success();
  cloud::Patience patience(loop_, limit_ms);
  for (;;) {
    RILLE_CO_TRY(const Value told, co_await call("GET", url, Value(), token));
    const std::string status = told.text("status");
    if (status == "Succeeded") co_return success();
    if (status == "Failed" || status == "Canceled")
      co_return api_.failed_later("operation", told["error"].text("code"), told["error"].text("message", status));
    if (status.empty()) co_return net::not_theirs("azure", "operation");
    RILLE_CO_CHECK(co_await patience.next("an operation of Azure", token));
  }
}

Async<> Arm::put(std::string kind, std::string name, Value body, std::int64_t send_by_wall_us, CancelToken token) {
  const std::string url = base_url_ + id_of(kind, name) + "?api-version=" + version_of(kind);
  const Result<Value> answer = co_await call("PUT", url, std::move(body), token, Effect::none.by(send_by_wall_us));
  if (!answer) co_return answer.error();
  co_return co_await finished(*answer, kind == machines ? create_patience_ms : part_patience_ms, token);
}

Async<Value> Arm::get(std::string kind, std::string name, CancelToken token) {
  const std::string url = base_url_ + id_of(kind, name) + "?api-version=" + version_of(kind);
  RILLE_CO_TRY(Value there, co_await call("GET", url, Value(), std::move(token)));
  if (there.text("name").empty()) co_return net::not_theirs("azure", "GET " + kind);
  co_return there;
}

Async<VirtualMachine> Arm::describe(std::string name, CancelToken token) {
  const std::string url =
      base_url_ + id_of(machines, name) + "?api-version=" + version_of(machines) + "&$expand=instanceView";
  RILLE_CO_TRY(const Value v, co_await call("GET", url, Value(), token));
  if (v.text("name").empty()) co_return net::not_theirs("azure", "GET virtualMachines");
  VirtualMachine out;
  out.name = v.text("name");
  out.tag = v["tags"].text(tag_key);
  out.location = v.text("location");
  out.type = v["properties"]["hardwareProfile"].text("vmSize");
  out.provisioning = v["properties"].text("provisioningState");
  for (const Value& status : list_of(v["properties"]["instanceView"]["statuses"])) {
    const std::string code = status.text("code");
    if (code.starts_with("PowerState/")) out.power = code.substr(11);
    if (code.starts_with("ProvisioningState/failed/")) out.failure = code.substr(25);
  }
  if (const Result<std::int64_t> at = parse_utc(v["properties"].text("timeCreated"))) out.created_wall_us = *at;
  for (const Value& disk : list_of(v["properties"]["storageProfile"]["dataDisks"])) {
    const std::string id = disk["managedDisk"].text("id");
    out.disks.push_back(id.substr(id.rfind('/') + 1));
  }
  if (const Value::Object* tags = v["tags"].as_object())
    for (const auto& [key, value] : *tags)
      if (key.starts_with(mount_key) && value.as_string())
        out.volumes.push_back({std::atoi(key.c_str() + std::string_view(mount_key).size()), *value.as_string()});
  co_return out;
}

Resource Arm::read_resource(std::string kind, const Value& v) {
  Resource out{std::move(kind), v.text("name"), v["tags"].text(tag_key), v.text("location")};
  out.provisioning = v["properties"].text("provisioningState");
  const Value::Array zones = list_of(v["zones"]);
  if (!zones.empty() && zones[0].as_string()) out.zone = *zones[0].as_string();
  return out;
}

// Requests the list of one resource kind. Resource Manager's list of all kinds is no use: it shows new resources late,
// and omits the tags if filtered by a tag.
Async<std::vector<Resource>> Arm::all_of(std::string kind, CancelToken token) {
  std::string url = base_url_ + path_of(kind) + "?api-version=" + version_of(kind);
  RILLE_CO_TRY(const Value::Array rows, co_await pages(std::move(url), token));
  std::vector<Resource> out;
  for (const Value& v : rows)
    if (v.text("location") == region_) out.push_back(read_resource(kind, v));
  co_return out;
}

Async<> Arm::remove(std::string kind, std::string name, bool wait, CancelToken token) {
  const std::string url = base_url_ + id_of(kind, name) + "?api-version=" + version_of(kind) +
                          (kind == machines ? "&forceDeletion=true" : "");
  const Result<Value> answer = co_await call("DELETE", url, Value(), token);
  if (!answer && answer.error().http_status == 404) co_return success();
  if (!answer) co_return answer.error();
  if (wait) co_return co_await finished(*answer, remove_patience_ms, token);
  co_return success();
}

Error Arm::failed(const std::string& code, const std::string& name) const {
  return api_.failed_later("PUT " + id_of(machines, name), code, "the machine could not be made");
}

}  // namespace rille::provider::azure
