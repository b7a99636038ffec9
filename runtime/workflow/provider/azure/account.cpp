#include <fmt/format.h>

#include "runtime/core/base/base64.hpp"
#include "runtime/workflow/provider/azure/arm.hpp"

namespace rille::provider::azure {

namespace {

constexpr std::int64_t act_patience_ms = 600'000;
constexpr const char* compute_version = "2024-07-01";

// Input for `az role definition create --role-definition @FILE`.
constexpr const char* policy_text = R"json({
  "Name": "Rille",
  "IsCustom": true,
  "Description": "Rents and ends virtual machines",
  "Actions": [
    "Microsoft.Compute/skus/read", "Microsoft.Compute/locations/operations/read",
    "Microsoft.Compute/locations/usages/read",
    "Microsoft.Compute/virtualMachines/read", "Microsoft.Compute/virtualMachines/write",
    "Microsoft.Compute/virtualMachines/delete", "Microsoft.Compute/virtualMachines/deallocate/action",
    "Microsoft.Compute/virtualMachines/start/action",
    "Microsoft.Compute/virtualMachines/attachDetachDataDisks/action", "Microsoft.Compute/disks/read",
    "Microsoft.Compute/disks/write", "Microsoft.Compute/disks/delete",
    "Microsoft.Network/locations/operations/read", "Microsoft.Network/networkInterfaces/read",
    "Microsoft.Network/networkInterfaces/write", "Microsoft.Network/networkInterfaces/delete",
    "Microsoft.Network/networkInterfaces/join/action", "Microsoft.Network/publicIPAddresses/read",
    "Microsoft.Network/publicIPAddresses/write", "Microsoft.Network/publicIPAddresses/delete",
    "Microsoft.Network/publicIPAddresses/join/action",
    "Microsoft.Network/virtualNetworks/subnets/join/action",
    "Microsoft.Network/networkSecurityGroups/read", "Microsoft.Network/networkSecurityGroups/write",
    "Microsoft.Network/networkSecurityGroups/delete", "Microsoft.Network/networkSecurityGroups/join/action",
    "Microsoft.Resources/subscriptions/read"
  ],
  "AssignableScopes": ["/subscriptions/SUBSCRIPTION"]
}
)json";

bool is_of_gpus(const std::string& name) {
  if (name == "cores" || name == "lowPriorityCores") return true;
  for (const char* family : {"standardN", "StandardN"})
    if (name.starts_with(family)) return true;
  return false;
}

}  // namespace

Async<Identity> Arm::identity(CancelToken token) {
  const std::string url = base_url_ + subscription_path_ + "?api-version=2022-12-01";
  RILLE_CO_TRY(const Value told, co_await call("GET", url, Value(), token));
  Identity out;
  out.account = fmt::format("subscription {} ({})", told.text("displayName"), told.text("subscriptionId"));
  out.age_unknown = "Azure tells it to administrators only: az ad app credential list --id CLIENT";
  out.skew_us = api_.skew_us();
  co_return out;
}

Async<std::vector<Quota>> Arm::quotas(CancelToken token) {
  std::string url = base_url_ + subscription_path_ + "/providers/Microsoft.Compute/locations/" + region_ +
                    "/usages?api-version=" + compute_version;
  RILLE_CO_TRY(const Value::Array rows, co_await pages(std::move(url), token));
  std::vector<Quota> out;
  for (const Value& v : rows) {
    Quota quota;
    quota.region = region_;
    quota.name = v["name"].text("value");
    quota.limit = v.number("limit");
    quota.used = v.number("currentValue", -1);
    if (!is_of_gpus(quota.name)) continue;
    quota.name += ", vCPUs";
    out.push_back(std::move(quota));
  }
  co_return out;
}

Async<> Arm::act(std::string name, std::string action, CancelToken token) {
  const std::string url = base_url_ + id_of(machines, name) + "/" + action + "?api-version=" + compute_version;
  RILLE_CO_TRY(Value answer, co_await call("POST", url, Value(), token));
  co_return co_await finished(std::move(answer), act_patience_ms, std::move(token));
}

Async<> Arm::change_size(std::string name, std::string size, CancelToken token) {
  const std::string url = base_url_ + id_of(machines, name) + "?api-version=" + compute_version;
  Value hardware, properties, body;
  hardware.set("vmSize", std::move(size));
  properties.set("hardwareProfile", std::move(hardware));
  body.set("properties", std::move(properties));
  RILLE_CO_TRY(Value answer, co_await call("PATCH", url, std::move(body), token));
  co_return co_await finished(std::move(answer), act_patience_ms, std::move(token));
}

Async<> Arm::attach(std::string name, std::vector<Attached> volumes, CancelToken token) {
  Value::Array all;
  for (const Attached& volume : volumes) {
    Value one;
    one.set("diskId", id_of(disks, volume.disk)).set("lun", volume.unit);
    one.set("caching", "None").set("deleteOption", "Detach");
    all.push_back(std::move(one));
  }
  const std::string url = base_url_ + id_of(machines, name) + "/attachDetachDataDisks?api-version=" + compute_version;
  Value body = Value().set("dataDisksToAttach", std::move(all));
  RILLE_CO_TRY(Value answer, co_await call("POST", url, std::move(body), token));
  co_return co_await finished(std::move(answer), act_patience_ms, std::move(token));
}

std::string policy() {
  std::string out = policy_text;
  const std::string mine = net::environment("AZURE_SUBSCRIPTION_ID"), mark = "SUBSCRIPTION";
  if (!mine.empty()) out.replace(out.find("/" + mark) + 1, mark.size(), mine);
  return out;
}

}  // namespace rille::provider::azure
