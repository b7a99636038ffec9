#include "runtime/workflow/provider/alibaba/ram.hpp"

#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/alibaba/ecs.hpp"
#include "runtime/workflow/provider/cloud/key_age.hpp"

namespace rille::provider::alibaba {

namespace {

using net::Effect;

constexpr const char* policy_text = R"json({
  "Version": "1",
  "Statement": [
    { "Effect": "Allow", "Resource": "*",
      "Action": ["ecs:DescribeInstanceTypes", "ecs:DescribeAvailableResource", "ecs:DescribePrice",
                 "ecs:DescribeSpotPriceHistory", "ecs:DescribeInstances", "ecs:DescribeDisks",
                 "ecs:DescribeAccountAttributes", "ecs:RunInstances", "ecs:CreateDisk", "ecs:TagResources",
                 "ram:ListAccessKeys"] },
    { "Effect": "Allow", "Resource": "*",
      "Action": ["ecs:DeleteInstances", "ecs:DeleteDisk", "ecs:AttachDisk", "ecs:StopInstance", "ecs:StartInstance",
                 "ecs:ModifyInstanceSpec", "ecs:ModifyInstanceAutoReleaseTime"],
      "Condition": { "StringLike": { "acs:ResourceTag/rille": "rille-*" } } }
  ]
}
)json";

}  // namespace

Ram::Ram(Loop& loop, net::CredentialChain& keys, const Value& endpoints)
    : keys_(keys), sts_url_(endpoints.text("sts", "https://sts.aliyuncs.com")),
      ram_url_(endpoints.text("ram", "https://ram.aliyuncs.com")), sts_(loop, api_options("2015-04-01"), keys),
      ram_(loop, api_options("2015-05-01"), keys) {}

Async<Value> Ram::caller(CancelToken token) {
  net::Parts asked = parts_for(sts_url_, "GetCallerIdentity");
  co_return co_await sts_.call("GetCallerIdentity", std::move(asked), Effect::none, std::move(token));
}

Async<std::string> Ram::account(CancelToken token) {
  RILLE_CO_TRY(const Value told, co_await caller(std::move(token)));
  co_return told.text("AccountId");
}

Async<Identity> Ram::identity(CancelToken token) {
  RILLE_CO_TRY(const Value told, co_await caller(token));
  Identity out;
  out.who = told.text("Arn");
  out.account = told.text("AccountId");
  out.skew_us = sts_.skew_us();
  cloud::KeyList list{"RAM", "CreateDate", parse_utc, {}};
  list.ask = [this](CancelToken t) { return keys_of_user(std::move(t)); };
  co_return co_await cloud::with_keys(std::move(out), keys_, std::move(list), std::move(token));
}

Async<Value::Array> Ram::keys_of_user(CancelToken token) {
  net::Parts asked = parts_for(ram_url_, "ListAccessKeys");
  RILLE_CO_TRY(const Value answer, co_await ram_.call("ListAccessKeys", std::move(asked), Effect::none, token));
  co_return net::list_of(answer["AccessKeys"]["AccessKey"]);
}

std::string policy() { return policy_text; }

}  // namespace rille::provider::alibaba
