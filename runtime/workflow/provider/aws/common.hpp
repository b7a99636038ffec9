// Common: what machines have beside them, and the members of a cluster have in common: the security group that Rille
// makes where the settings name none, and with EFA the placement group. They are made with the first machine that wants
// them and go after the last one: whoever lists what a machine has left is told of them when none is there any more.
// Another process may take them away just before a machine is to be put there: create then makes them anew.
// Loop thread only. It must outlive its calls.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/workflow/provider/aws/ec2.hpp"

namespace rille::provider::aws {

struct CommonSettings {
  std::string vpc, security_group;  // security_group "": one is made
  std::vector<std::string> ssh_from;
};

class Common {
 public:
  Common(Loop& loop, Ec2& ec2, CommonSettings settings) : loop_(loop), ec2_(ec2), settings_(std::move(settings)) {}

  // One that is ordered now: what it shares is not taken away meanwhile by the others that this process orders or ends.
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

  struct Place {
    Place() = default;             // not an aggregate: see loop/task.hpp
    std::string group, placement;  // the security group's id; the placement group's name, or ""
  };
  Async<Place> ready(CreateRequest request, bool efa, CancelToken token);
  // Whether that refusal says that they have gone meanwhile; if so, they are forgotten.
  bool have_gone(const Error& refusal, const CreateRequest& request);
  // After a refusal: what was made for it goes, unless others are there or come.
  Async<> take_back(CreateRequest request, Place place, CancelToken token);

  // Those that no machine has any more. `all`: the region's instances, also those that have ended; of a cluster's it is
  // told to whom asks for the tag of one that was in it, and else under its maker's.
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
  std::map<std::string, int> orders_;  // by cluster
  // Of clusters, by name, and whether EFA may pass: what this process has found or made.
  std::map<std::pair<std::string, bool>, std::string> groups_;
  std::set<std::string> placements_;
  std::map<std::string, std::vector<Future<bool>>> making_;  // and who waits for it
};

}  // namespace rille::provider::aws
