// Calls for the resources that machines share: the security group, which allows SSH and traffic between the members of
// a cluster, and the placement group of a cluster with EFA. A security group is created for one machine or for a
// cluster if the settings name none. Each resource has the tag of the machine that made it, and is deleted after the
// last machine, since EC2 refuses to delete a group in use.
#include <fmt/format.h>

#include "runtime/workflow/provider/aws/ec2.hpp"

namespace rille::provider::aws {

namespace {

using net::Effect;
using net::list_of;

Parameters tagged(const char* kind, const std::string& tag, const std::string& cluster) {
  Parameters out{{"TagSpecification.1.ResourceType", kind},
                 {"TagSpecification.1.Tag.1.Key", tag_key},
                 {"TagSpecification.1.Tag.1.Value", tag}};
  if (!cluster.empty())
    out.insert(out.end(), {{"TagSpecification.1.Tag.2.Key", cluster_key}, {"TagSpecification.1.Tag.2.Value", cluster}});
  return out;
}

// Adds rule number `n`: all traffic between members of the group. EFA needs the rule in both directions, since EFA
// bypasses IP and a rule for all IP addresses does not cover it.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html
void add_inner_rule(Parameters& out, int n, const std::string& group) {
  out.insert(out.end(), {{fmt::format("IpPermissions.{}.IpProtocol", n), "-1"},
                         {fmt::format("IpPermissions.{}.Groups.1.GroupId", n), group}});
}

Parameters ingress(const std::string& id, const GroupWish& wish) {
  Parameters out{{"GroupId", id},
                 {"IpPermissions.1.IpProtocol", "tcp"},
                 {"IpPermissions.1.FromPort", "22"},
                 {"IpPermissions.1.ToPort", "22"}};
  for (std::size_t i = 0; i < wish.ssh_from.size(); ++i)
    out.emplace_back(fmt::format("IpPermissions.1.IpRanges.{}.CidrIp", i + 1), wish.ssh_from[i]);
  if (wish.inner) add_inner_rule(out, 2, id);
  return out;
}

bool names_itself(const Value& rules, const std::string& group) {
  for (const Value& rule : list_of(rules))
    for (const Value& other : list_of(rule["groups"]))
      if (other.text("groupId") == group) return true;
  return false;
}

Owned read_owned(const Value& v) {
  return {v.text("groupId"), v.text("groupName"), tag_in(v["tagSet"]), tag_in(v["tagSet"], cluster_key)};
}

}  // namespace

// An earlier send of the same create may have made the group; adds the rules if a crash has left the group without
// them.
Async<std::string> Ec2::security_group(GroupWish wish, CancelToken token) {
  RILLE_CO_TRY(Value group, co_await find_group(wish.name, wish.vpc, token));
  if (group.is_null()) {
    Parameters make = tagged("security-group", wish.tag, wish.cluster);
    make.insert(make.end(), {{"GroupName", wish.name}, {"GroupDescription", "of machines that Rille rents"}});
    if (!wish.vpc.empty()) make.emplace_back("VpcId", wish.vpc);
    Result<Value> made = co_await call("CreateSecurityGroup", std::move(make), Effect::lasting, token);
    if (made) {
      group = std::move(*made);
    } else {
      if (made.error().code != "InvalidGroup.Duplicate") co_return made.error();
      RILLE_CO_TRY(group, co_await find_group(wish.name, wish.vpc, token));
      if (group.is_null()) co_return made.error();
    }
  }
  const std::string id = group.text("groupId");
  if (id.empty()) co_return net::not_theirs("aws", "CreateSecurityGroup");
  if (list_of(group["ipPermissions"]).empty()) {  // one call adds all rules, so a group has all or none
    const auto opened = co_await call("AuthorizeSecurityGroupIngress", ingress(id, wish), Effect::lasting, token);
    if (!opened && opened.error().code != "InvalidPermission.Duplicate") co_return opened.error();
  }
  if (wish.efa && !names_itself(group["ipPermissionsEgress"], id)) {
    Parameters out{{"GroupId", id}};
    add_inner_rule(out, 1, id);
    const auto opened = co_await call("AuthorizeSecurityGroupEgress", std::move(out), Effect::lasting, token);
    if (!opened && opened.error().code != "InvalidPermission.Duplicate") co_return opened.error();
  }
  co_return id;
}

Async<std::map<std::string, std::string>> Ec2::subnet_zones(std::vector<std::string> subnets, CancelToken token) {
  Parameters asked;
  for (std::size_t i = 0; i < subnets.size(); ++i) asked.emplace_back(fmt::format("SubnetId.{}", i + 1), subnets[i]);
  RILLE_CO_TRY(const Value all, co_await page_through("DescribeSubnets", std::move(asked), "subnetSet", token));
  std::map<std::string, std::string> out;
  for (const Value& v : *all.as_array()) out[v.text("subnetId")] = v.text("availabilityZone");
  co_return out;
}

Async<Value> Ec2::find_group(std::string name, std::string vpc, CancelToken token) {
  Parameters asked{{"Filter.1.Name", "group-name"}, {"Filter.1.Value.1", name}};
  if (!vpc.empty()) asked.insert(asked.end(), {{"Filter.2.Name", "vpc-id"}, {"Filter.2.Value.1", vpc}});
  RILLE_CO_TRY(const Value found, co_await call("DescribeSecurityGroups", std::move(asked), Effect::none, token));
  if (found["securityGroupInfo"].is_null()) co_return net::not_theirs("aws", "DescribeSecurityGroups");
  const Value::Array groups = list_of(found["securityGroupInfo"]);
  co_return groups.empty() ? Value() : groups[0];
}

Async<std::vector<Owned>> Ec2::groups(CancelToken token) {
  Parameters asked{{"Filter.1.Name", "tag-key"}, {"Filter.1.Value.1", tag_key}, {"MaxResults", "1000"}};
  RILLE_CO_TRY(const Value all,
               co_await page_through("DescribeSecurityGroups", std::move(asked), "securityGroupInfo", token));
  std::vector<Owned> out;
  for (const Value& v : *all.as_array()) out.push_back(read_owned(v));
  co_return out;
}

Async<> Ec2::delete_group(std::string id, CancelToken token) {
  Parameters asked{{"GroupId", id}};
  auto answer = co_await call("DeleteSecurityGroup", std::move(asked), Effect::none, token);
  if (!answer && answer.error().http_status != 404) co_return answer.error();
  co_return success();
}

// A Duplicate error is success: another member of the cluster or an earlier send has made the placement group.
Async<> Ec2::placement_group(std::string name, std::string tag, CancelToken token) {
  Parameters make = tagged("placement-group", tag, name);
  make.insert(make.end(), {{"GroupName", name}, {"Strategy", "cluster"}});
  const auto made = co_await call("CreatePlacementGroup", std::move(make), Effect::lasting, token);
  if (!made && made.error().code != "InvalidPlacementGroup.Duplicate") co_return made.error();
  co_return success();
}

Async<std::vector<Owned>> Ec2::placement_groups(CancelToken token) {
  Parameters asked{{"Filter.1.Name", "tag-key"},
                   {"Filter.1.Value.1", tag_key},
                   {"Filter.2.Name", "state"},
                   {"Filter.2.Value.1", "pending"},
                   {"Filter.2.Value.2", "available"}};
  const auto answer = co_await call("DescribePlacementGroups", std::move(asked), Effect::none, token);
  std::vector<Owned> out;
  if (!answer && answer.error().code == "UnauthorizedOperation") co_return out;
  if (!answer) co_return answer.error();
  if ((*answer)["placementGroupSet"].is_null()) co_return net::not_theirs("aws", "DescribePlacementGroups");
  for (const Value& v : list_of((*answer)["placementGroupSet"])) out.push_back(read_owned(v));
  co_return out;
}

Async<> Ec2::delete_placement_group(std::string name, CancelToken token) {
  Parameters asked{{"GroupName", name}};
  auto answer = co_await call("DeletePlacementGroup", std::move(asked), Effect::none, token);
  if (!answer && answer.error().http_status != 404) co_return answer.error();
  co_return success();
}

}  // namespace rille::provider::aws
