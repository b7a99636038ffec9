// Common: resources that one machine needs or that all members of a cluster share: the security group that Rille
// creates if the settings name none, and with EFA the placement group. They are created with the first machine that
// needs them, and listed as left over, to be deleted, once no machine uses them.
// Another process may delete them just before a machine is created in them: create then makes them again.
// Loop thread only. A Common must outlive the calls made on it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/workflow/provider/aws/ec2.hpp"

namespace rille::provider::aws {

struct CommonSettings {
  std::string vpc, security_group;  // security_group "": create one
  std::vector<std::string> ssh_from;
};

class Common {
 public:
  Common(Loop& loop, Ec2& ec2, CommonSettings settings) : loop_(loop), ec2_(ec2), settings_(std::move(settings)) {}

  // Exists while a machine is being created. Meanwhile other creates and releases of this process do not delete the
  // shared resources of the machine's cluster.
  class Order {
   public:
    Order(Common& common, std::string cluster) : common_(common), cluster_(std::move(cluster)) {
      ++common_.orders_[cluster_];
    }
    Order(const Order&) = delete;
    ~Order() {
      if (--common_.orders_[cluster_] == 0) common_.orders_.erase(cluster_);
    }

   private:
    Common& common_;
    std::string cluster_;
  };

  struct SharedIds {
    SharedIds() = default;         // prevents an aggregate, which GCC 12 would destroy twice: see loop/task.hpp
    std::string group, placement;  // the security group's id; the placement group's name, "": none
  };
  Async<SharedIds> ready(CreateRequest request, bool efa, CancelToken token);
  // Whether EC2 refused the create because the shared resources no longer exist; if so, drops them from the cache.
  bool have_gone(const Error& refusal, const CreateRequest& request);
  // After a refused create: deletes the resources made for the request, unless other machines use or will use them.
  Async<> take_back(CreateRequest request, SharedIds place, CancelToken token);

  // The shared resources that no machine uses any more. `all`: the region's instances, including ended ones. A
  // cluster's resource is listed with `asked_tag` if the machine with that tag was in the cluster, else with the tag of
  // the machine that made the resource.
  Async<std::vector<Machine>> left_over(std::vector<Instance> all, std::string asked_tag, CancelToken token);
  static bool is_id(std::string_view id) { return id.starts_with("sg-") || id.starts_with("pg-"); }
  Async<Machine> describe(std::string id, CancelToken token);
  Async<> remove(std::string id, CancelToken token);

 private:
  Async<std::string> group(GroupWish wish, CancelToken token);
  void forget(const std::string& group);

  Loop& loop_;
  Ec2& ec2_;
  const CommonSettings settings_;
  std::map<std::string, int> orders_;  // number of creates in progress, by cluster name
  // Ids of the security groups that this process has found or made, by cluster name and whether EFA is allowed.
  std::map<std::pair<std::string, bool>, std::string> groups_;
  std::set<std::string> placements_;
  std::map<std::string, std::vector<Future<bool>>> making_;  // by cluster: callers that wait for its new group
};

}  // namespace rille::provider::aws
