// Rille's calls of EC2's API; results are plain structs. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/net/credentials/aws/service.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/cloud/prices.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::aws {

using Parameters = std::vector<std::pair<std::string, std::string>>;

struct InstanceType {
  std::string name, gpu;  // gpu: the GPU model; "": the type has no GPU
  int gpu_count = 0, vcpus = 0;
  std::int64_t gpu_memory_bytes = 0, memory_bytes = 0;
  bool spot = false;
  double network_gbps = 0;  // 0: no guaranteed bandwidth
  int efa_cards = 0;        // network cards that support an Elastic Fabric Adapter
  bool own_disk = false;    // the type has local disks
  bool xen = false;         // on the Xen hypervisor: its EBS disks are not NVMe devices
};

struct Instance {
  std::string id, state, tag, cluster, token, zone, type, address, private_address, reason;
  std::map<std::string, std::string> volumes;  // ids of the volumes that it shall have, by the letter of the device
  std::vector<std::string> disks;              // ids of all disks that are attached
  std::int64_t launched_wall_us = 0;
  std::int64_t ended_wall_us = 0;  // when termination began; 0: not terminated, or unknown
  bool spot = false;
};

// An EBS volume with a tag of Rille: of a machine, or one that outlives machines.
struct Disk {
  std::string id, tag, state, zone;
  bool is_volume = false;
};

// A security group or placement group with a tag of Rille.
struct Owned {
  std::string id, name, tag, cluster;  // cluster: name of the cluster; "": belongs to a single machine
};

struct GroupWish {
  GroupWish() = default;                // prevents an aggregate, which GCC 12 would destroy twice: see loop/task.hpp
  std::string name, tag, cluster, vpc;  // vpc "": the default VPC
  std::vector<std::string> ssh_from;
  bool inner = false, efa = false;  // inner: members may reach each other by IP; efa: by EFA, which bypasses IP
};

// Options whose error table has the codes of EC2, IAM and Service Quotas and those that all AWS services share.
net::ApiOptions api_options(const std::string& region, const char* service, bool json);
using net::aws::domain_of;
using net::aws::parts_for;
inline constexpr const char *tag_key = "rille", *cluster_key = "rille-cluster", *volume_key = "rille-volume",
                            *mount_key = "rille-volume-";  // of a volume; of an instance: "rille-volume-f" is the id
                                                           // of the volume to be /dev/sdf
std::string tag_in(const Value& tags, const char* key = tag_key);  // the value of tag `key`; "": not tagged

class Ec2 {
 public:
  // `endpoints`: overrides of "ec2" and "pricing", for tests.
  Ec2(Loop& loop, net::CredentialChain& keys, std::string region, const Value& endpoints);

  const std::string& region() const { return region_; }
  Async<std::vector<InstanceType>> types(CancelToken token);
  // Spot prices in micro-dollars per hour, by type and then zone; a missing entry means unknown.
  using ZonePrices = std::map<std::string, Micros>;
  Async<std::map<std::string, ZonePrices>> spot_prices(std::vector<std::string> types, CancelToken token);
  // The availability zone of each subnet, by subnet id.
  Async<std::map<std::string, std::string>> subnet_zones(std::vector<std::string> subnets, CancelToken token);
  // The changes of the types' spot prices since since_us, in all zones.
  Async<std::vector<PricePoint>> spot_history(std::vector<std::string> types, std::int64_t since_us, CancelToken token);
  // The type's on-demand and reserved prices in dollars.
  Async<cloud::Price> price(std::string type, CancelToken token);

  Async<Instance> run(Parameters parameters, std::int64_t send_by_wall_us, CancelToken token);
  // All instances that the parameters select; requests every page.
  Async<std::vector<Instance>> describe(Parameters parameters, CancelToken token);
  Async<> terminate(std::string id, CancelToken token);
  // Changing an instance's type: stop, change_type, start. change_type fails unless the instance is stopped.
  Async<> stop(std::string id, CancelToken token);
  Async<> change_type(std::string id, std::string type, CancelToken token);
  Async<> start(std::string id, CancelToken token);
  // All disks with a tag of Rille.
  Async<std::vector<Disk>> disks(CancelToken token);
  // A disk by its id, whatever tags it has, as people remove tags; nullopt: EC2 does not know it.
  Async<std::optional<Disk>> disk(std::string id, CancelToken token);
  Async<Disk> create_disk(Parameters parameters, std::int64_t send_by_wall_us, CancelToken token);
  Async<> attach(std::string disk, std::string instance, std::string device, CancelToken token);
  Async<std::vector<std::string>> zones(CancelToken token);  // the region's zones that are available, by name
  Async<> delete_disk(std::string id, CancelToken token);
  struct Image {
    std::string id, root;
  };  // root: the device name of the boot disk
  Async<Image> image(std::string owner, std::string name_pattern, CancelToken token);  // the newest image that matches
  Async<Image> image(std::string id, CancelToken token);
  // This and the group calls below are in network.cpp. Finds or creates the security group wish.name with its rules.
  Async<std::string> security_group(GroupWish wish, CancelToken token);
  Async<std::vector<Owned>> groups(CancelToken token);
  Async<> delete_group(std::string id, CancelToken token);
  // Finds or creates the placement group `name`, which keeps its machines close together.
  Async<> placement_group(std::string name, std::string tag, CancelToken token);
  // Placement groups with a tag of Rille. Empty if the keys may not list placement groups: then Rille has made none.
  Async<std::vector<Owned>> placement_groups(CancelToken token);
  Async<> delete_placement_group(std::string name, CancelToken token);

 private:
  Async<Value> call(std::string action, Parameters parameters, net::Effect effect, CancelToken token);
  Async<Value> find_group(std::string name, std::string vpc, CancelToken token);  // a null Value: no such group
  Async<Value> page_through(std::string action, Parameters parameters, std::string list, CancelToken token);

  std::string region_, ec2_, pricing_;
  net::Api api_, pricing_api_;
};

}  // namespace rille::provider::aws
