// The security group that lets ssh in, made for one machine where the settings name none. It bears the machine's tag,
// as its name, too, and goes after it: EC2 refuses to delete one that a machine still has.
#include <fmt/format.h>

#include "runtime/provider/aws/ec2.hpp"

namespace rille::provider::aws {

namespace {

using cloud::Effect;
using cloud::list_of;

// RFC 1918 and 6598: from elsewhere nothing with such an address arrives.
constexpr const char* private_ranges[] = {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"};

}  // namespace

// An earlier send of the same create may have made it: one that lets nobody in was left by a crash.
Async<std::string> Ec2::security_group(std::string tag, std::string vpc, std::vector<std::string> from,
                                       bool peers, CancelToken token) {
  RILLE_CO_TRY(Value group, co_await find_group(tag, vpc, token));
  if (group.is_null()) {
    Parameters make{{"GroupName", tag}, {"GroupDescription", "ssh to a machine that Rille rents"},
                    {"TagSpecification.1.ResourceType", "security-group"}, {"TagSpecification.1.Tag.1.Key", tag_key},
                    {"TagSpecification.1.Tag.1.Value", tag}};
    if (!vpc.empty()) make.emplace_back("VpcId", vpc);
    Result<Value> made = co_await call("CreateSecurityGroup", std::move(make), Effect::lasting, token);
    if (made) {
      group = std::move(*made);
    } else {
      if (made.error().code != "InvalidGroup.Duplicate") co_return made.error();
      RILLE_CO_TRY(group, co_await find_group(tag, vpc, token));
      if (group.is_null()) co_return made.error();
    }
  }
  const std::string id = group.text("groupId");
  if (id.empty()) co_return cloud::not_theirs("aws", "CreateSecurityGroup");
  if (!list_of(group["ipPermissions"]).empty()) co_return id;
  Parameters open{{"GroupId", id}, {"IpPermissions.1.IpProtocol", "tcp"}, {"IpPermissions.1.FromPort", "22"},
                  {"IpPermissions.1.ToPort", "22"}};
  for (std::size_t i = 0; i < from.size(); ++i)
    open.emplace_back(fmt::format("IpPermissions.1.IpRanges.{}.CidrIp", i + 1), from[i]);
  if (peers) {
    open.emplace_back("IpPermissions.2.IpProtocol", "-1");
    for (std::size_t i = 0; i < std::size(private_ranges); ++i)
      open.emplace_back(fmt::format("IpPermissions.2.IpRanges.{}.CidrIp", i + 1), private_ranges[i]);
  }
  const auto opened = co_await call("AuthorizeSecurityGroupIngress", std::move(open), Effect::lasting, token);
  if (!opened && opened.error().code != "InvalidPermission.Duplicate") co_return opened.error();
  co_return id;
}

Async<Value> Ec2::find_group(std::string name, std::string vpc, CancelToken token) {
  Parameters asked{{"Filter.1.Name", "group-name"}, {"Filter.1.Value.1", name}};
  if (!vpc.empty()) asked.insert(asked.end(), {{"Filter.2.Name", "vpc-id"}, {"Filter.2.Value.1", vpc}});
  RILLE_CO_TRY(const Value found, co_await call("DescribeSecurityGroups", std::move(asked), Effect::none, token));
  if (found["securityGroupInfo"].is_null()) co_return cloud::not_theirs("aws", "DescribeSecurityGroups");
  const Value::Array groups = list_of(found["securityGroupInfo"]);
  co_return groups.empty() ? Value() : groups[0];
}

Async<std::vector<std::pair<std::string, std::string>>> Ec2::groups(CancelToken token) {
  Parameters asked{{"Filter.1.Name", "tag-key"}, {"Filter.1.Value.1", tag_key}, {"MaxResults", "1000"}};
  RILLE_CO_TRY(const Value all,
               co_await page_through("DescribeSecurityGroups", std::move(asked), "securityGroupInfo", token));
  std::vector<std::pair<std::string, std::string>> out;
  for (const Value& v : *all.as_array()) out.emplace_back(v.text("groupId"), tag_in(v["tagSet"]));
  co_return out;
}

Async<> Ec2::delete_group(std::string id, CancelToken token) {
  Parameters asked{{"GroupId", id}};
  auto answer = co_await call("DeleteSecurityGroup", std::move(asked), Effect::none, token);
  if (!answer && answer.error().http_status != 404) co_return answer.error();
  co_return success();
}

}  // namespace rille::provider::aws
