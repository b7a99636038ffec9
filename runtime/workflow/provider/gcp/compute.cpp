#include "runtime/workflow/provider/gcp/compute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/net/credentials/bearer.hpp"
#include "runtime/workflow/provider/amounts.hpp"
#include "runtime/workflow/provider/cloud/wait.hpp"
#include "runtime/workflow/provider/gpus.hpp"
#include "runtime/workflow/provider/outcome.hpp"

namespace rille::provider::gcp {

namespace {

using net::Effect;
using net::list_of;
using net::Trouble;

constexpr int rows_per_page = 500, pages_max = 200;
constexpr std::int64_t insert_patience_ms = 180'000, act_patience_ms = 300'000;

constexpr net::Meaning meanings[] = {
    {"ZONE_RESOURCE_POOL_EXHAUSTED*", Trouble::capacity},
    {"RESOURCE_POOL_EXHAUSTED", Trouble::capacity},
    {"REGION_RESOURCE_POOL_EXHAUSTED", Trouble::capacity},
    {"GPU_STOCKOUT", Trouble::capacity},
    {"insufficientCapacity", Trouble::capacity},
    {"UNSUPPORTED_OPERATION", Trouble::capacity},  // the instance was deleted while being created
    {"QUOTA_EXCEEDED", Trouble::quota, "ask for more on the console's quota page, or take another region"},
    {"quotaExceeded", Trouble::quota,
     "ask for more on the console's quota page; of GPUS_ALL_REGIONS no other region has more"},
    {"rateLimitExceeded", Trouble::throttle},
    {"userRateLimitExceeded", Trouble::throttle},
    {"RESOURCE_OPERATION_RATE_EXCEEDED", Trouble::throttle},
    {"RESOURCE_NOT_READY", Trouble::transient},
    {"resourceNotReady", Trouble::transient},
    {"backendError", Trouble::transient},
    {"authError", Trouble::expired},
    {"notFound", Trouble::not_found},
    {"alreadyExists", Trouble::conflict},
    {"resourceInUseByAnotherResource", Trouble::conflict},
    {"RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", Trouble::conflict},
    {"IAM_PERMISSION_DENIED", Trouble::auth, "rille doctor --provider gcp --policy prints the required permissions"},
    {"forbidden", Trouble::auth, "rille doctor --provider gcp --policy prints the required permissions"},
    {"accessNotConfigured", Trouble::auth, "switch the project's Compute Engine API on"},
};

net::Answer read_answer(const net::HttpResponse& response) {
  net::Answer out;
  if (Result<Value> value = Value::from_json(response.body)) out.value = std::move(*value);
  out.foreign = !(response.ok() ? out.value : out.value["error"]).as_object();
  if (response.ok() || out.foreign) return out;
  const Value& error = out.value["error"];
  const Value::Array errors = list_of(error["errors"]);
  out.code = errors.empty() ? error.text("status") : errors[0].text("reason");
  out.message = error.text("message");
  return out;
}

net::ApiOptions options() {
  net::ApiOptions out;
  out.provider = "gcp";
  out.meanings = meanings;
  out.read = read_answer;
  out.sign = [](net::Parts parts, const net::Credentials& who, std::int64_t) {
    return net::bear_token(std::move(parts), who);
  };
  return out;
}

std::string last_part(const std::string& link) { return link.substr(link.rfind('/') + 1); }

// Memory of one GPU, which the API does not return: from the name ("A100 80GB"), else from the table. 0: unknown.
std::int64_t gpu_bytes(const std::string& model) {
  constexpr std::pair<std::string_view, int> known[] = {{"T4", 16},    {"L4", 24},          {"P4", 8},    {"P100", 16},
                                                        {"V100", 16},  {"A100", 40},        {"H100", 80}, {"H200", 141},
                                                        {"B200", 180}, {"RTX PRO 6000", 96}};
  double gib = 0;
  for (const auto& [name, size] : known)
    if (model == name || model.starts_with(std::string(name) + " ")) gib = size;
  if (const std::size_t end = model.rfind("GB"); end != std::string::npos)
    gib = number_at(std::string_view(model).substr(model.rfind(' ', end) + 1));
  return amounts::bytes(gib, amounts::gib);
}

// Whether the machine type has ARM processors, judged by its family, since the API may omit the architecture.
bool is_arm(const std::string& machine) {
  constexpr std::string_view begins[] = {"t2a-", "c4a-", "n4a-", "a4x-"};
  return std::any_of(std::begin(begins), std::end(begins), [&](std::string_view b) { return machine.starts_with(b); });
}

// GPUs that can be attached to an N1 machine. vcpus_max: the most vCPUs with 1, 2, 4 and 8 GPUs; 0: not allowed.
// https://cloud.google.com/compute/docs/gpus
struct Attachable {
  const char* name;
  int vcpus_max[4];
};
constexpr Attachable attachables[] = {{"nvidia-tesla-t4", {48, 48, 96, 0}},
                                      {"nvidia-tesla-p4", {24, 48, 96, 0}},
                                      {"nvidia-tesla-p100", {16, 32, 96, 0}},
                                      {"nvidia-tesla-v100", {12, 24, 48, 96}}};

void set_gpus(Offer& offer, const std::string& type, int count) {
  offer.gpu = gpu_model(type);
  offer.gpu_count = count;
  offer.gpu_memory_bytes = gpu_bytes(offer.gpu);
}

constexpr const char* slice = " slice";  // after a GPU's model: its price with its part of the machine

// The key of a line that is a GPU's, the model as offers have it; "": another line. The names of 2026:
// "Nvidia H100 80GB GPU", "Nvidia H100 80GB Mega GPU" (or Plus), "H200 141GB GPU", "RTX 6000 96GB", and
// "A4 Nvidia B200 (1 gpu slice)", which has no lines for its processors and memory.
std::string gpu_in(const std::string& what) {
  constexpr std::string_view of_a4 = "A4 ", part = " (1 gpu slice)";
  if (what == "RTX 6000 96GB") return "RTX PRO 6000";
  if (what.starts_with(of_a4) && what.ends_with(part))
    return gpu_model(what.substr(of_a4.size(), what.size() - of_a4.size() - part.size())) + slice;
  if (!what.ends_with(" GPU") || !(what.starts_with("Nvidia ") || what.starts_with("H200 "))) return "";
  const std::string model = gpu_model(what);
  return model == "H100 80GB MEGA" || model == "H100 80GB PLUS" ? "H100 MEGA 80GB" : model;
}

std::string upper_case(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return text;
}

// "N2D Core", "A3PLUS Ram".
std::string part_of(const std::string& family, const std::string& part) { return upper_case(family) + " " + part; }

// The first part of the keys of a type's processors and memory.
std::string family_of(const std::string& type) {
  if (type.starts_with("a3-megagpu-")) return "A3PLUS";
  if (type.starts_with("a3-ultragpu-")) return "A3ULTRA";
  return upper_case(type.substr(0, type.find('-')));
}

// A shared core has two vCPUs and costs a part of one: https://cloud.google.com/compute/docs/general-purpose-machines
std::int64_t quarters_of_vcpus(const Offer& offer) {
  return offer.id == "e2-micro" ? 1 : offer.id == "e2-small" ? 2 : offer.id == "e2-medium" ? 4 : 4LL * offer.vcpus;
}

// The PartPrices key for a price list description without commitment, such as "Spot Preemptible N1 Predefined Instance
// Core running in Americas" or "Nvidia L4 GPU attached to Spot Preemptible VMs running in Iowa". "": no part that Rille
// prices, such as a custom machine's.
std::string sold_in(std::string what) {
  what.resize(std::min(what.find(" running in"), what.size()));
  for (const char* filler : {"Spot Preemptible ", "Preemptible ", " attached to Spot Preemptible VMs",
                             " attached to VMs", "Predefined ", " Instance", " AMD"})
    if (const std::size_t at = what.find(filler); at != std::string::npos)
      what.erase(at, std::string_view(filler).size());
  if (const std::string gpu = gpu_in(what); !gpu.empty()) return gpu;
  const bool is_part = what.ends_with(" Core") || what.ends_with(" Ram");
  const std::size_t space = what.find(' ');
  return is_part && space == what.rfind(' ') ? part_of(what.substr(0, space), what.substr(space + 1)) : "";
}

// The PartPrices key for a committed price: "Commitment v1: N2 Cpu in Americas for 1 Year" (no family means N1) or
// "Commitment v1: Nvidia H100 80GB GPU running in Americas for 1 Year". "": another line.
std::string committed_in(const std::string& text) {
  constexpr std::string_view begin = "Commitment v1: ";
  if (!text.starts_with(begin)) return "";
  std::string what = text.substr(begin.size());
  what.resize(std::min({what.find(" running in "), what.find(" in "), what.size()}));
  if (const std::string gpu = gpu_in(what); !gpu.empty()) return gpu;
  if (const std::size_t at = what.find(" AMD "); at != std::string::npos) what.erase(at, 4);
  const std::size_t space = what.find(' ');
  const std::string family = space == std::string::npos ? "N1" : what.substr(0, space);
  const std::string part = space == std::string::npos ? what : what.substr(space + 1);
  return part == "Cpu" ? part_of(family, "Core") : part == "Ram" ? part_of(family, "Ram") : "";
}

// Parses "2026-11-22T01:02:03.456-08:00" to microseconds since 1970, without the fraction of a second; 0: not a time.
std::int64_t time_of(const std::string& text) {
  if (text.size() < 25) return 0;
  const Result<std::int64_t> local = parse_utc(text.substr(0, 19) + "Z");
  const int hours = std::atoi(text.substr(text.size() - 5, 2).c_str());
  const int minutes = std::atoi(text.substr(text.size() - 2).c_str());
  const int sign = text[text.size() - 6] == '-' ? 1 : -1;
  return local ? *local + sign * (hours * 60LL + minutes) * 60'000'000 : 0;
}

Instance read_instance(const Value& v) {
  Instance out;
  out.zone = last_part(v.text("zone"));
  out.name = v.text("name");
  out.status = v.text("status");
  out.type = last_part(v.text("machineType"));
  out.tag = v["labels"].text(tag_key);
  for (const Value& item : list_of(v["metadata"]["items"])) {
    if (item.text("key") == tag_item) out.tag = item.text("value");
    if (item.text("key") != volumes_item) continue;
    std::istringstream names(item.text("value"));
    for (std::string name; names >> name;) out.volumes.push_back(std::move(name));
  }
  for (const Value& disk : list_of(v["disks"])) out.disks.push_back(last_part(disk.text("source")));
  for (const Value& nic : list_of(v["networkInterfaces"])) {
    if (out.private_address.empty()) out.private_address = nic.text("networkIP");
    for (const Value& config : list_of(nic["accessConfigs"]))
      if (!config.text("natIP").empty()) out.address = config.text("natIP");
  }
  out.created_wall_us = time_of(v.text("creationTimestamp"));
  out.started_wall_us = time_of(v.text("lastStartTimestamp"));
  out.stopped_wall_us = time_of(v.text("lastStopTimestamp"));
  return out;
}

Disk read_disk(const Value& v) {
  Disk out;
  out.zone = last_part(v.text("zone"));
  out.name = v.text("name");
  out.tag = v["labels"].text(tag_key);
  out.status = v.text("status");
  out.used = !list_of(v["users"]).empty();
  out.is_volume = !v["labels"].text(volume_key).empty();
  return out;
}

}  // namespace

TypeName read_type(const std::string& id) {
  const std::size_t at = id.find('@');
  const std::string type = id.substr(0, at), zone = at == std::string::npos ? "" : id.substr(at + 1);
  const std::size_t plus = type.find('+'), colon = type.rfind(':');
  if (plus == std::string::npos || colon == std::string::npos || colon < plus) return {type, "", 0, zone};
  return {type.substr(0, plus), type.substr(plus + 1, colon - plus - 1), std::atoi(type.c_str() + colon + 1), zone};
}

bool cannot_move(const std::string& machine) {
  constexpr std::string_view begins[] = {"a2-", "a3-", "a4-", "a4x-", "g2-", "g4-", "h3-", "h4d-", "x4-"};
  return machine.ends_with("-metal") || std::any_of(std::begin(begins), std::end(begins),
                                                    [&](std::string_view begin) { return machine.starts_with(begin); });
}

const char* usual_disk_kind(const std::string& machine) {
  constexpr std::string_view newer[] = {"c4-", "c4a-", "c4d-",         "n4-", "n4a-", "n4d-", "h4d-",
                                        "m4-", "x4-",  "a3-ultragpu-", "a4-", "a4x-", "g4-"};
  for (const std::string_view begin : newer)
    if (machine.starts_with(begin)) return "hyperdisk-balanced";
  return machine.starts_with("c3-") && machine.ends_with("-metal") ? "hyperdisk-balanced" : "pd-balanced";
}

Micros price_of(const Offer& offer, const PartPrices& prices) {
  if (offer.id.starts_with("a4-")) {
    const auto whole = prices.find(offer.gpu + slice);
    return whole == prices.end() ? price_unknown : (whole->second * offer.gpu_count + 999) / 1000;
  }
  const std::string family = family_of(offer.id);
  const auto core = prices.find(family + " Core"), ram = prices.find(family + " Ram"), gpu = prices.find(offer.gpu);
  if (core == prices.end() || ram == prices.end() || (offer.gpu_count > 0 && gpu == prices.end())) return price_unknown;
  std::int64_t nanos = core->second * quarters_of_vcpus(offer) / 4 + ram->second * (offer.memory_bytes >> 20) / 1024;
  if (offer.gpu_count > 0) nanos += gpu->second * offer.gpu_count;
  return (nanos + 999) / 1000;
}

Compute::Compute(Loop& loop, net::CredentialChain& keys, std::string region, std::string project,
                 const Value& endpoints)
    : loop_(loop), region_(std::move(region)),
      url_(endpoints.text("compute", "https://compute.googleapis.com/compute/v1") + "/projects/" + project),
      billing_url_(endpoints.text("billing", "https://cloudbilling.googleapis.com/v1")),
      iam_url_(endpoints.text("iam", "https://iam.googleapis.com/v1")), api_(loop, options(), keys) {}

Async<Value> Compute::call(std::string method, std::string path, net::Query query, Value body, Effect effect,
                           CancelToken token) {
  const std::string url = path.starts_with("http") ? path : url_ + path;
  const std::size_t host = url.find("://") + 3, slash = url.find('/', host);
  net::Parts parts;
  parts.method = method;
  parts.scheme = url.substr(0, host - 3);
  parts.host = url.substr(host, slash - host);
  parts.path = net::encode_path(url.substr(slash));
  parts.query = std::move(query);
  if (body.as_object()) {
    parts.headers = {{"Content-Type", "application/json"}};
    parts.body = to_plain_json(body);
  }
  const bool of_compute = !path.starts_with("http");
  const std::string operation = method + " " + (of_compute ? path : parts.path);
  RILLE_CO_TRY(Value answer, co_await api_.call(operation, std::move(parts), effect, std::move(token)));
  // A response without a Compute Engine `kind` is not Google's. The list field proves nothing: empty lists omit it.
  if (of_compute && !answer.text("kind").starts_with("compute#")) co_return net::not_theirs("gcp", operation);
  co_return answer;
}

// All rows of one zone's list; of an aggregated list, which covers all zones, the rows of this region's zones.
Async<Value::Array> Compute::pages(std::string path, std::string kind, net::Query query, CancelToken token) {
  Value::Array out;
  query.emplace_back("maxResults", std::to_string(rows_per_page));
  std::string next;
  for (int page = 0; page < pages_max; ++page) {
    net::Query asked = query;
    if (!next.empty()) asked.emplace_back("pageToken", next);
    RILLE_CO_TRY(const Value answer, co_await call("GET", path, std::move(asked), Value(), Effect::none, token));
    if (!answer.text("kind").ends_with("List")) co_return net::not_theirs("gcp", "GET " + path);
    for (const Value& row : list_of(answer["items"])) out.push_back(row);
    const Value::Object* scopes = answer["items"].as_object();
    for (const auto& [scope, part] : scopes ? *scopes : Value::Object()) {
      if (!scope.starts_with("zones/" + region_ + "-")) continue;
      if (part["warning"].text("code") == "UNREACHABLE")  // fail: the zone's machines may still exist
        co_return make_error(ErrorKind::network, fmt::format("gcp: {}: Google cannot reach {} at present", path, scope),
                             "the zone has an outage: run it again later");
      for (const Value& row : list_of(part[kind])) out.push_back(row);
    }
    next = answer.text("nextPageToken");
    if (next.empty()) co_return out;
  }
  co_return make_error(
      ErrorKind::integrity,
      fmt::format("Google's answer to {} has more than {} pages, which is the most that Rille reads", path, pages_max),
      "run it again; if it stays, report it as a bug of Rille");
}

Async<std::vector<Offer>> Compute::types(std::string zone, CancelToken token) {
  net::Query none, also_none;
  RILLE_CO_TRY(const Value::Array machines,
               co_await pages("/zones/" + zone + "/machineTypes", "machineTypes", std::move(none), token));
  RILLE_CO_TRY(const Value::Array gpus,
               co_await pages("/zones/" + zone + "/acceleratorTypes", "acceleratorTypes", std::move(also_none), token));
  std::vector<Offer> out;
  for (const Value& v : machines) {
    Offer offer;
    offer.id = v.text("name");
    if (v.text("architecture") == "ARM64" || is_arm(offer.id)) continue;
    offer.vcpus = amounts::count(v.number("guestCpus"));
    offer.memory_bytes = amounts::bytes(v.number("memoryMb"), amounts::mib);
    if (v["bundledLocalSsds"].integer("partitionCount") > 0) offer.disk_kind = "nvme";
    for (const Value& inside : list_of(v["accelerators"]))
      set_gpus(offer, inside.text("guestAcceleratorType"), amounts::count(inside.number("guestAcceleratorCount")));
    out.push_back(offer);
    if (!offer.id.starts_with("n1-standard-")) continue;
    for (const Value& gpu : gpus) {
      const std::string name = gpu.text("name");
      for (const Attachable& known : attachables)
        for (int i = 0; i < 4 && name == known.name; ++i) {
          const int count = 1 << i;
          if (offer.vcpus > known.vcpus_max[i] || count > gpu.integer("maximumCardsPerInstance")) continue;
          Offer with = offer;
          with.id += fmt::format("+{}:{}", name, count);
          set_gpus(with, name, count);
          out.push_back(std::move(with));
        }
    }
  }
  co_return out;
}

Async<PriceList> Compute::prices(bool spot, CancelToken token) {
  PriceList out;
  std::string next;
  for (int page = 0; page < pages_max; ++page) {
    net::Query query{{"currencyCode", "USD"}, {"pageSize", "5000"}};
    if (!next.empty()) query.emplace_back("pageToken", next);
    RILLE_CO_TRY(const Value answer, co_await call("GET", billing_url_ + "/services/6F81-5844-456A/skus",
                                                   std::move(query), Value(), Effect::none, token));
    if (!answer["skus"].as_array()) co_return net::not_theirs("gcp", "the price list");
    for (const Value& sku : *answer["skus"].as_array()) {
      const Value::Array regions = list_of(sku["serviceRegions"]);
      const bool here = std::any_of(regions.begin(), regions.end(),
                                    [&](const Value& r) { return r.as_string() && *r.as_string() == region_; });
      const std::string use = sku["category"].text("usageType");
      PartPrices* parts = nullptr;
      const std::string told = sku.text("description");
      // Some lines of spot machines have the type OnDemand.
      const bool is_spot = use == "Preemptible" || (use == "OnDemand" && told.starts_with("Spot Preemptible "));
      if ((is_spot || use == "OnDemand") && is_spot == spot) parts = &out.now;
      else if (!spot && use == "Commit1Yr") parts = &out.year;
      else if (!spot && use == "Commit3Yr") parts = &out.three_years;
      if (!here || !parts) continue;
      const std::string what = parts == &out.now ? sold_in(told) : committed_in(told);
      const Value::Array infos = list_of(sku["pricingInfo"]);
      const Value::Array tiers =
          infos.empty() ? Value::Array() : list_of(infos.back()["pricingExpression"]["tieredRates"]);
      if (what.empty() || tiers.empty()) continue;
      const Value& unit = tiers.back()["unitPrice"];
      const std::int64_t whole = std::atoll(unit.text("units", "0").c_str());
      (*parts)[what] = whole * 1'000'000'000 + unit.integer("nanos");
    }
    next = answer.text("nextPageToken");
    if (next.empty()) co_return out;
  }
  co_return make_error(
      ErrorKind::integrity,
      fmt::format("Google's price list has more than {} pages, which is the most that Rille reads", pages_max),
      "run it again; if it stays, report it as a bug of Rille");
}

Async<> Compute::make(std::string kind, std::string zone, Value resource, std::string request_id,
                      std::int64_t send_by_wall_us, CancelToken token) {
  net::Query query{{"requestId", std::move(request_id)}};
  RILLE_CO_TRY(Value operation, co_await call("POST", "/zones/" + zone + "/" + kind, std::move(query),
                                              std::move(resource), Effect::lasting.by(send_by_wall_us), token));
  if (operation.text("name").empty()) co_return net::not_theirs("gcp", "insert");
  const Result<Value> ended = co_await done(zone, std::move(operation), insert_patience_ms, std::move(token));
  if (!ended) co_return left_open(ended.error());
  co_return result_of(*ended, "operation insert");
}

Async<> Compute::insert(std::string zone, Value instance, std::string request_id, std::int64_t send_by_wall_us,
                        CancelToken token) {
  const std::string name = instance.text("name");
  const Result<> made =
      co_await make("instances", zone, std::move(instance), std::move(request_id), send_by_wall_us, token);
  if (made || made.error().http_status != 409) co_return made;
  const Result<Instance> there = co_await describe(zone, name, token);  // an earlier send may have made it
  if (there && !there->tag.empty()) co_return success();
  co_return made;
}

Async<> Compute::insert_disk(std::string zone, Value disk, std::string request_id, std::int64_t send_by_wall_us,
                             CancelToken token) {
  const std::string name = disk.text("name");
  const Result<> made = co_await make("disks", zone, std::move(disk), std::move(request_id), send_by_wall_us, token);
  if (made || made.error().http_status != 409) co_return made;
  const Result<Disk> there = co_await describe_disk(zone, name, token);
  if (there && !there->tag.empty()) co_return success();
  co_return made;
}

Async<> Compute::finished(std::string zone, Value operation, std::int64_t limit_ms, std::string what,
                          CancelToken token) {
  RILLE_CO_TRY(const Value ended, co_await done(std::move(zone), std::move(operation), limit_ms, std::move(token)));
  co_return result_of(ended, what);
}

// Polls until the operation has ended and returns it, failed or not. The error is one of polling, not the operation's.
Async<Value> Compute::done(std::string zone, Value operation, std::int64_t limit_ms, CancelToken token) {
  cloud::Patience patience(loop_, limit_ms);
  const std::string place = zone.empty() ? "/global" : "/zones/" + zone;
  while (operation.text("status") != "DONE") {
    RILLE_CO_CHECK(co_await patience.next("operation " + operation.text("name"), token));
    net::Query none;
    std::string path = place + "/operations/" + operation.text("name");
    RILLE_CO_TRY(operation, co_await call("GET", std::move(path), std::move(none), Value(), Effect::none, token));
  }
  co_return operation;
}

Result<> Compute::result_of(const Value& operation, const std::string& what) const {
  const Value::Array errors = list_of(operation["error"]["errors"]);
  if (errors.empty()) return success();
  return api_.failed_later(what, errors[0].text("code"), errors[0].text("message"));
}

Async<> Compute::act(std::string zone, std::string name, std::string action, Value body, CancelToken token) {
  net::Query none;
  RILLE_CO_TRY(Value answer, co_await call("POST", "/zones/" + zone + "/instances/" + name + "/" + action,
                                           std::move(none), std::move(body), Effect::lasting, token));
  std::string what = "operation " + action;
  co_return co_await finished(zone, std::move(answer), act_patience_ms, std::move(what), std::move(token));
}

Async<Instance> Compute::describe(std::string zone, std::string name, CancelToken token) {
  net::Query none;
  RILLE_CO_TRY(const Value answer, co_await call("GET", "/zones/" + zone + "/instances/" + name, std::move(none),
                                                 Value(), Effect::none, token));
  if (answer.text("name") != name) co_return net::not_theirs("gcp", "GET /zones/" + zone + "/instances/" + name);
  co_return read_instance(answer);
}

Async<std::vector<Instance>> Compute::list(CancelToken token) {
  net::Query query{{"filter", fmt::format("labels.{}:*", tag_key)}};
  RILLE_CO_TRY(const Value::Array rows, co_await pages("/aggregated/instances", "instances", std::move(query), token));
  std::vector<Instance> out;
  for (const Value& v : rows) out.push_back(read_instance(v));
  co_return out;
}

Async<> Compute::remove(std::string zone, std::string name, CancelToken token) {
  net::Query none;
  auto answer =
      co_await call("DELETE", "/zones/" + zone + "/instances/" + name, std::move(none), Value(), Effect::none, token);
  if (!answer) co_return answer.error();
  co_return success();
}

Async<std::vector<Disk>> Compute::disks(CancelToken token) {
  net::Query query{{"filter", fmt::format("labels.{}:*", tag_key)}};
  RILLE_CO_TRY(const Value::Array rows, co_await pages("/aggregated/disks", "disks", std::move(query), token));
  std::vector<Disk> out;
  for (const Value& v : rows) out.push_back(read_disk(v));
  co_return out;
}

Async<Disk> Compute::describe_disk(std::string zone, std::string name, CancelToken token) {
  net::Query none;
  RILLE_CO_TRY(const Value answer, co_await call("GET", "/zones/" + zone + "/disks/" + name, std::move(none), Value(),
                                                 Effect::none, token));
  if (answer.text("name") != name) co_return net::not_theirs("gcp", "GET /zones/" + zone + "/disks/" + name);
  Disk out = read_disk(answer);
  out.is_volume = out.is_volume || out.tag.empty();  // without labels it may be a volume, and its data are not gone
  co_return out;
}

Async<> Compute::remove_disk(std::string zone, std::string name, CancelToken token) {
  net::Query none;
  auto answer =
      co_await call("DELETE", "/zones/" + zone + "/disks/" + name, std::move(none), Value(), Effect::none, token);
  if (!answer) co_return answer.error();
  co_return success();
}

}  // namespace rille::provider::gcp
