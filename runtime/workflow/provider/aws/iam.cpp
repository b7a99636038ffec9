#include "runtime/workflow/provider/aws/iam.hpp"

#include <fmt/format.h>

#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/aws/ec2.hpp"
#include "runtime/workflow/provider/cloud/key_age.hpp"

namespace rille::provider::aws {

namespace {

using net::Effect;

constexpr int policy_pages_max = 50;

// The region for which IAM requests are signed: IAM is global, with one fixed region for each partition of AWS.
std::string iam_region(const std::string& region) {
  if (region.starts_with("cn-")) return "cn-north-1";
  return region.starts_with("us-gov-") ? "us-gov-west-1" : "us-east-1";
}

std::string iam_address(const std::string& region) {
  if (region.starts_with("cn-")) return "https://iam.cn-north-1.amazonaws.com.cn";
  return region.starts_with("us-gov-") ? "https://iam.us-gov.amazonaws.com" : "https://iam.amazonaws.com";
}

net::Parts form_for(const std::string& url, net::Query fields) {
  net::Parts out = parts_for(url);
  out.headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
  out.body = net::join_query(fields);
  return out;
}

// Whether a quota limits GPU machines: "Running On-Demand P instances", "All G and VT Spot Instance Requests".
bool is_of_gpus(const std::string& name) {
  const bool counts = (name.starts_with("Running On-Demand ") && name.ends_with(" instances")) ||
                      (name.starts_with("All ") && name.ends_with(" Spot Instance Requests"));
  return counts && (name.find(" P ") != std::string::npos || name.find(" P4, ") != std::string::npos ||
                    name.find(" P5") != std::string::npos || name.find(" G and VT ") != std::string::npos);
}

constexpr const char* policy_text = R"json({
  "Version": "2012-10-17",
  "Statement": [
    { "Effect": "Allow", "Resource": "*",
      "Action": ["ec2:DescribeInstanceTypes", "ec2:DescribeSpotPriceHistory", "ec2:DescribeInstances",
                 "ec2:DescribeVolumes", "ec2:DescribeImages", "ec2:DescribeSubnets", "ec2:DescribeSecurityGroups",
                 "ec2:CreateSecurityGroup", "ec2:AuthorizeSecurityGroupIngress",
                 "ec2:AuthorizeSecurityGroupEgress", "ec2:DescribePlacementGroups", "ec2:CreatePlacementGroup",
                 "ec2:RunInstances", "ec2:CreateVolume", "ec2:DescribeAvailabilityZones",
                 "pricing:GetProducts", "servicequotas:ListServiceQuotas"] },
    { "Effect": "Allow", "Resource": "arn:*:iam::*:user/${aws:username}", "Action": "iam:ListAccessKeys" },
    { "Effect": "Allow", "Resource": "*", "Action": "iam:CreateServiceLinkedRole",
      "Condition": { "StringEquals": { "iam:AWSServiceName": "spot.amazonaws.com" } } },
    { "Effect": "Allow", "Resource": "*", "Action": "ec2:CreateTags",
      "Condition": { "StringEquals": { "ec2:CreateAction": ["RunInstances", "CreateVolume", "CreateSecurityGroup",
                                                           "CreatePlacementGroup"] } } },
    { "Effect": "Allow", "Resource": "*",
      "Action": ["ec2:TerminateInstances", "ec2:StopInstances", "ec2:StartInstances",
                 "ec2:ModifyInstanceAttribute", "ec2:DeleteVolume", "ec2:AttachVolume", "ec2:DeleteSecurityGroup",
                 "ec2:DeletePlacementGroup"],
      "Condition": { "StringLike": { "ec2:ResourceTag/rille": "rille-*" } } }
  ]
}
)json";

}  // namespace

Iam::Iam(Loop& loop, net::CredentialChain& keys, std::string region, const Value& endpoints)
    : keys_(keys), sts_url_(endpoints.text("sts", fmt::format("https://sts.{}.{}", region, domain_of(region)))),
      iam_url_(endpoints.text("iam", iam_address(region))),
      quotas_url_(
          endpoints.text("servicequotas", fmt::format("https://servicequotas.{}.{}", region, domain_of(region)))),
      sts_(loop, api_options(region, "sts", false), keys),
      iam_(loop, api_options(iam_region(region), "iam", false), keys),
      quotas_(loop, api_options(region, "servicequotas", true), keys) {}

Async<Value> Iam::caller(CancelToken token) {
  net::Parts asked = form_for(sts_url_, {{"Action", "GetCallerIdentity"}, {"Version", "2011-06-15"}});
  RILLE_CO_TRY(const Value answer, co_await sts_.call("GetCallerIdentity", std::move(asked), Effect::none, token));
  co_return answer["GetCallerIdentityResult"];
}

Async<std::string> Iam::account(CancelToken token) {
  RILLE_CO_TRY(const Value told, co_await caller(std::move(token)));
  co_return told.text("Account");
}

Async<Identity> Iam::identity(CancelToken token) {
  RILLE_CO_TRY(const Value told, co_await caller(token));
  Identity out;
  out.who = told.text("Arn");
  out.account = told.text("Account");
  out.skew_us = sts_.skew_us();
  cloud::KeyList list{"IAM", "CreateDate", parse_utc, {}};
  list.ask = [this](CancelToken t) { return keys_of_user(std::move(t)); };
  co_return co_await cloud::with_keys(std::move(out), keys_, std::move(list), std::move(token));
}

Async<Value::Array> Iam::keys_of_user(CancelToken token) {
  net::Parts asked = form_for(iam_url_, {{"Action", "ListAccessKeys"}, {"Version", "2010-05-08"}});
  RILLE_CO_TRY(const Value answer, co_await iam_.call("ListAccessKeys", std::move(asked), Effect::none, token));
  co_return net::list_of(answer["ListAccessKeysResult"]["AccessKeyMetadata"]);
}

Async<std::vector<Quota>> Iam::quotas(CancelToken token) {
  std::vector<Quota> out;
  std::string next;
  for (int page = 0; page < policy_pages_max; ++page) {
    Value body;
    body.set("ServiceCode", "ec2").set("MaxResults", 100);
    if (!next.empty()) body.set("NextToken", next);
    net::Parts asked = parts_for(quotas_url_);
    asked.headers = {{"Content-Type", "application/x-amz-json-1.1"},
                     {"X-Amz-Target", "ServiceQuotasV20190624.ListServiceQuotas"}};
    asked.body = body.to_json();
    RILLE_CO_TRY(const Value answer, co_await quotas_.call("ListServiceQuotas", std::move(asked), Effect::none, token));
    for (const Value& row : answer["Quotas"].as_array() ? *answer["Quotas"].as_array() : Value::Array()) {
      Quota quota;
      quota.name = row.text("QuotaName");
      quota.limit = row.number("Value");
      if (!is_of_gpus(quota.name)) continue;
      quota.name += ", vCPUs";
      out.push_back(std::move(quota));
    }
    next = answer.text("NextToken");
    if (next.empty()) co_return out;
  }
  co_return make_error(
      ErrorKind::integrity,
      fmt::format("AWS's answer to ListServiceQuotas has more than {} pages, which is the most that Rille reads",
                  policy_pages_max),
      "run it again; if it stays, report it as a bug of Rille");
}

std::string policy() { return policy_text; }

}  // namespace rille::provider::aws
