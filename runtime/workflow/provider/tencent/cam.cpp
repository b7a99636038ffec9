#include "runtime/workflow/provider/tencent/cam.hpp"

#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/cloud/key_age.hpp"
#include "runtime/workflow/provider/tencent/cvm.hpp"

namespace rille::provider::tencent {

namespace {

using net::Effect;

// Covers all machines: a tag condition matches only whole values, and each of Rille's machines has a different value.
constexpr const char* policy_text = R"json({
  "version": "2.0",
  "statement": [
    { "effect": "allow", "resource": "*",
      "action": ["cvm:DescribeZoneInstanceConfigInfos", "cvm:DescribeInstanceTypeConfigs",
                 "cvm:DescribeInstances", "cvm:DescribeAccountQuota", "cvm:RunInstances",
                 "cvm:TerminateInstances", "cvm:StopInstances", "cvm:StartInstances", "cvm:ResetInstancesType",
                 "cbs:DescribeDisks", "cbs:CreateDisks", "cbs:AttachDisks", "cbs:TerminateDisks",
                 "cbs:InquiryPriceCreateDisks", "cam:ListAccessKeys"] }
  ]
}
)json";

// Parses "2019-12-25 14:53:03" to microseconds since 1970.
Result<std::int64_t> time_of(std::string text) {
  if (text.size() == 19) text[10] = 'T';
  return parse_utc(text + "Z");
}

}  // namespace

Cam::Cam(Loop& loop, net::CredentialChain& keys, const std::string& region, const Value& endpoints)
    : keys_(keys), sts_url_(endpoints.text("sts", "https://sts.tencentcloudapi.com")),
      cam_url_(endpoints.text("cam", "https://cam.tencentcloudapi.com")),
      sts_(loop, api_options("sts", "2018-08-13", region), keys),
      cam_(loop, api_options("cam", "2019-01-16", region), keys) {}

Async<Value> Cam::caller(CancelToken token) {
  net::Parts asked = parts_for(sts_url_, "GetCallerIdentity", "{}");
  co_return co_await sts_.call("GetCallerIdentity", std::move(asked), Effect::none, std::move(token));
}

Async<std::string> Cam::account(CancelToken token) {
  RILLE_CO_TRY(const Value told, co_await caller(std::move(token)));
  co_return told.text("AccountId");
}

Async<Identity> Cam::identity(CancelToken token) {
  RILLE_CO_TRY(const Value told, co_await caller(token));
  Identity out;
  out.who = told.text("Arn");
  out.account = told.text("AccountId");
  out.skew_us = sts_.skew_us();
  cloud::KeyList list{"CAM", "CreateTime", time_of, {}};
  list.ask = [this](CancelToken t) { return keys_of_user(std::move(t)); };
  co_return co_await cloud::with_keys(std::move(out), keys_, std::move(list), std::move(token));
}

Async<Value::Array> Cam::keys_of_user(CancelToken token) {
  net::Parts asked = parts_for(cam_url_, "ListAccessKeys", "{}");
  RILLE_CO_TRY(const Value answer, co_await cam_.call("ListAccessKeys", std::move(asked), Effect::none, token));
  co_return net::list_of(answer["AccessKeys"]);
}

std::string policy() { return policy_text; }

}  // namespace rille::provider::tencent
