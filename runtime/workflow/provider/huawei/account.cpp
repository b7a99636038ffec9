#include <tuple>

#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/huawei/ecs.hpp"

namespace rille::provider::huawei {

namespace {

using net::Effect;

constexpr const char* policy_text = R"json({
  "Version": "1.1",
  "Statement": [
    { "Effect": "Allow",
      "Action": ["ecs:cloudServerFlavors:get", "ecs:cloudServerQuotas:get", "ecs:cloudServers:list",
                 "ecs:cloudServers:get", "ecs:cloudServers:create", "ecs:cloudServers:delete",
                 "ecs:cloudServers:resize", "ecs:cloudServers:attach", "vpc:publicIps:create",
                 "vpc:publicIps:delete", "evs:volumes:create", "evs:volumes:delete", "evs:volumes:list",
                 "evs:volumes:use", "iam:projects:listProjects", "bss:discount:view"] }
  ]
}
)json";

}  // namespace

// IAM returns the age of a user's own permanent key without any permission; it does not know temporary keys.
Async<Identity> Ecs::identity(std::string key_id, CancelToken token) {
  Identity out;
  net::Query none;
  const Result<Value> answer = co_await call("GET", "iam/v3.0/OS-CREDENTIAL/credentials/" + key_id, std::move(none),
                                             Value(), Effect::none, token);
  if (!answer && token.cancelled()) co_return answer.error();
  if (answer) {
    const Value& key = (*answer)["credential"];
    out.who = "user " + key.text("user_id");
    if (const Result<std::int64_t> made = parse_utc(key.text("create_time"))) out.key_made_wall_us = *made;
  } else {
    out.age_unknown = answer.error().message;
  }
  RILLE_CO_TRY(const std::string id, co_await project(token));
  out.account = "project " + id;
  out.skew_us = api_.skew_us();
  co_return out;
}

Async<std::string> Ecs::domain(CancelToken token) {
  net::Query query{{"name", region_}};
  RILLE_CO_TRY(const Value answer,
               co_await call("GET", "iam/v3/projects", std::move(query), Value(), Effect::none, token));
  for (const Value& row : net::list_of(answer["projects"]))
    if (!row.text("domain_id").empty()) co_return row.text("domain_id");
  co_return std::string();
}

Async<std::vector<Quota>> Ecs::quotas(CancelToken token) {
  net::Query none;
  RILLE_CO_TRY(const Value answer, co_await call("GET", "ecs/v1/{project}/cloudservers/limits", std::move(none),
                                                 Value(), Effect::none, token));
  const Value& told = answer["absolute"];
  std::vector<Quota> out;
  for (const auto& [name, most, used] : {std::tuple("servers", "maxTotalInstances", "totalInstancesUsed"),
                                         std::tuple("vCPUs", "maxTotalCores", "totalCoresUsed"),
                                         std::tuple("spot servers", "maxTotalSpotInstances", "totalSpotInstancesUsed"),
                                         std::tuple("spot vCPUs", "maxTotalSpotCores", "totalSpotCoresUsed")}) {
    if (told[most].is_null()) continue;
    Quota quota;
    quota.region = region_;
    quota.name = name;
    quota.limit = told.number(most);
    quota.used = told.number(used, -1);
    out.push_back(std::move(quota));
  }
  co_return out;
}

std::string policy() { return policy_text; }

}  // namespace rille::provider::huawei
