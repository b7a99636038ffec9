#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/gcp/compute.hpp"

namespace rille::provider::gcp {

namespace {

using net::Effect;

// Input for `gcloud iam roles create rille --project PROJECT --file FILE`.
constexpr const char* policy_text = R"json({
  "title": "Rille",
  "stage": "GA",
  "includedPermissions": [
    "compute.projects.get", "compute.regions.get", "compute.machineTypes.list", "compute.acceleratorTypes.list",
    "compute.instances.create", "compute.instances.delete", "compute.instances.get", "compute.instances.list",
    "compute.instances.setLabels", "compute.instances.setMetadata", "compute.instances.setMachineType",
    "compute.instances.setTags", "compute.instances.start", "compute.instances.stop", "compute.instances.attachDisk",
    "compute.disks.create", "compute.disks.delete", "compute.disks.get", "compute.disks.list",
    "compute.disks.setLabels", "compute.disks.use", "compute.images.useReadOnly", "compute.subnetworks.use",
    "compute.subnetworks.useExternalIp", "compute.firewalls.create", "compute.firewalls.delete",
    "compute.firewalls.get", "compute.firewalls.list", "compute.networks.updatePolicy",
    "compute.globalOperations.get", "compute.zoneOperations.get", "iam.serviceAccountKeys.get"
  ]
}
)json";

void add_quotas(std::vector<Quota>& out, const Value& rows, const std::string& region) {
  for (const Value& v : rows.as_array() ? *rows.as_array() : Value::Array()) {
    Quota quota;
    quota.region = region;
    quota.name = v.text("metric");
    quota.limit = v.number("limit");
    quota.used = v.number("usage", -1);
    if (quota.name.find("GPUS") != std::string::npos && quota.name.find("COMMITTED") == std::string::npos)
      out.push_back(std::move(quota));
  }
}

}  // namespace

Async<Identity> Compute::identity(std::string account, std::string key_id, CancelToken token) {
  net::Query none, also_none, none_either;
  RILLE_CO_TRY(const Value project, co_await call("GET", "", std::move(none), Value(), Effect::none, token));
  RILLE_CO_CHECK(co_await call("GET", "/regions/" + region_, std::move(none_either), Value(), Effect::none, token));
  Identity out;
  out.who = account;
  out.account = "project " + project.text("name");
  out.skew_us = api_.skew_us();
  if (account.empty() || key_id.empty()) {
    out.age_unknown = "no key of a service account";
    co_return out;
  }
  const std::string url = iam_url_ + "/projects/-/serviceAccounts/" + account + "/keys/" + key_id;
  const Result<Value> key = co_await call("GET", url, std::move(also_none), Value(), Effect::none, token);
  if (!key && token.cancelled()) co_return key.error();
  const Result<std::int64_t> made = key ? parse_utc(key->text("validAfterTime")) : Result<std::int64_t>(key.error());
  if (made) out.key_made_wall_us = *made;
  else out.age_unknown = made.error().message;
  co_return out;
}

Async<std::vector<Quota>> Compute::quotas(CancelToken token) {
  net::Query none, also_none;
  RILLE_CO_TRY(const Value project, co_await call("GET", "", std::move(none), Value(), Effect::none, token));
  RILLE_CO_TRY(const Value region,
               co_await call("GET", "/regions/" + region_, std::move(also_none), Value(), Effect::none, token));
  std::vector<Quota> out;
  add_quotas(out, project["quotas"], region_);
  add_quotas(out, region["quotas"], region_);
  co_return out;
}

std::string policy() { return policy_text; }

}  // namespace rille::provider::gcp
