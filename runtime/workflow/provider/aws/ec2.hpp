// EC2's calls, as plain values: what goes in, what comes out. Everything that EC2 calls by its own names is known here
// and nowhere else. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/net/credentials/aws/service.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/cloud/prices.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::aws {

using Parameters = std::vector<std::pair<std::string, std::string>>;

struct InstanceType {
  std::string name, gpu;  // gpu: the model; "" without
  int gpu_count = 0, vcpus = 0;
  std::int64_t gpu_memory_bytes = 0, memory_bytes = 0;
  bool spot = false;
  double network_gbps = 0;  // 0: it may burst to more than it always has
  int efa_cards = 0;        // network cards that can each have an Elastic Fabric Adapter; 0: it has none
  bool own_disk = false;    // has disks in the machine
};

struct Instance {
  std::string id, state, tag, cluster, token, zone, type, address, private_address, reason;
  std::int64_t launched_wall_us = 0;
  std::int64_t ended_wall_us = 0;  // since when it ends, or has ended; 0: it does not, or nobody says
  bool spot = false;
};

// What bears a tag of ours beside instances.
struct Owned {
  std::string id, name, tag, cluster;  // cluster: rent_options.hpp; "": one machine's alone
};

struct GroupWish {
  GroupWish() = default;                // not an aggregate: see loop/task.hpp
  std::string name, tag, cluster, vpc;  // vpc "": the default
  std::vector<std::string> ssh_from;
  bool inner = false, efa = false;  // what is in it may talk to each other; also past IP, as EFA does
};

// Knows the error codes of EC2, IAM and Service Quotas besides those that all services share.
net::ApiOptions api_options(const std::string& region, const char* service, bool json);
using net::aws::domain_of;
using net::aws::parts_for;
inline constexpr const char *tag_key = "rille", *cluster_key = "rille-cluster";
std::string tag_in(const Value& tags, const char* key = tag_key);  // ours; "": there is none

class Ec2 {
 public:
  // `endpoints`: "ec2" and "pricing" by other addresses than Amazon's, as a test has them.
  Ec2(Loop& loop, net::CredentialChain& keys, std::string region, const Value& endpoints);

  const std::string& region() const { return region_; }
  Async<std::vector<InstanceType>> types(CancelToken token);
  // Dollars per hour by the type's name and zone; of those that are not in it the price is not known.
  using ZonePrices = std::map<std::string, Micros>;
  Async<std::map<std::string, ZonePrices>> spot_prices(std::vector<std::string> types, CancelToken token);
  // The zone of each.
  Async<std::map<std::string, std::string>> subnet_zones(std::vector<std::string> subnets, CancelToken token);
  // What they cost as spot since then, all zones.
  Async<std::vector<PricePoint>> spot_history(std::vector<std::string> types, std::int64_t since_us, CancelToken token);
  // On demand and reserved, in dollars.
  Async<cloud::Price> price(std::string type, CancelToken token);

  Async<Instance> run(Parameters parameters, std::int64_t send_by_wall_us, CancelToken token);
  // Those that the parameters name or filter, all pages.
  Async<std::vector<Instance>> describe(Parameters parameters, CancelToken token);
  Async<> terminate(std::string id, CancelToken token);
  // The type of a stopped one can be changed.
  Async<> stop(std::string id, CancelToken token);
  Async<> change_type(std::string id, std::string type, CancelToken token);
  Async<> start(std::string id, CancelToken token);
  // Disks that bear a tag of ours and belong to no machine: (id, tag).
  Async<std::vector<std::pair<std::string, std::string>>> loose_disks(CancelToken token);
  Async<> delete_disk(std::string id, CancelToken token);
  struct Image {
    std::string id, root;
  };  // and the device that is its first disk
  Async<Image> image(std::string owner, std::string name_pattern, CancelToken token);  // the newest that fits
  Async<Image> image(std::string id, CancelToken token);
  // network.cpp. The security group of that name, with its rules, made if there is none.
  Async<std::string> security_group(GroupWish wish, CancelToken token);
  Async<std::vector<Owned>> groups(CancelToken token);
  Async<> delete_group(std::string id, CancelToken token);
  // The placement group of that name, which keeps its machines close together; made if there is none.
  Async<> placement_group(std::string name, std::string tag, CancelToken token);
  // None where the keys may not ask: then they have made none.
  Async<std::vector<Owned>> placement_groups(CancelToken token);
  Async<> delete_placement_group(std::string name, CancelToken token);

 private:
  Async<Value> call(std::string action, Parameters parameters, net::Effect effect, CancelToken token);
  Async<Value> find_group(std::string name, std::string vpc, CancelToken token);  // null: there is none
  Async<Value> page_through(std::string action, Parameters parameters, std::string list, CancelToken token);

  std::string region_, ec2_, pricing_;
  net::Api api_, pricing_api_;
};

}  // namespace rille::provider::aws
