// Rille's calls of Azure Resource Manager and of Azure's price API; results are plain structs. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::azure {

inline constexpr const char* tag_key = "rille";
inline constexpr const char* mount_key = "rille-volume-";  // with the logical unit: the machine's tag for a volume
inline constexpr std::string_view machines = "virtualMachines", disks = "disks", interfaces = "networkInterfaces",
                                  addresses = "publicIPAddresses", groups = "networkSecurityGroups";

// Azure's error at deleting the network interface of a failed machine: Azure reserves the interface for three minutes.
inline constexpr const char* reserved_code = "NicReservedForAnotherVm";

struct Prices {
  Micros on_demand = price_unknown, spot = price_unknown;
  Micros reserved_1y = price_unknown, reserved_3y = price_unknown;  // micro-dollars per hour with a reservation
};

struct Resource {
  std::string kind, name, tag, location;  // kind: `machines`, `disks`, `interfaces`, `addresses` or `groups`
  std::string provisioning = {}, zone = {};
};

struct Attached {
  int unit = 0;      // the logical unit
  std::string disk;  // name
};

struct VirtualMachine {
  std::string name, tag, type, location, provisioning, power, failure;  // failure: error code; "": none
  std::int64_t created_wall_us = 0;
  std::vector<std::string> disks;  // names of the attached data disks
  std::vector<Attached> volumes;   // that it is to have
};

// Features that a virtual machine size must support.
struct Needs {
  bool premium_disk = false, generation_2 = false;  // generation_2: boots images of Azure's VM generation 2
};

class Arm {
 public:
  Arm(Loop& loop, net::CredentialChain& keys, std::string region, const std::string& subscription,
      const std::string& group, const Value& endpoints);

  const std::string& region() const { return region_; }
  std::int64_t skew_us() const { return api_.skew_us(); }
  // The id of a resource in Rille's resource group, by which other resources refer to it.
  std::string id_of(std::string_view kind, const std::string& name) const;
  // The region's virtual machine sizes as offers without prices. zone "": any zone. Offer id: the size's name.
  Async<std::vector<Offer>> sizes(std::string zone, bool spot, Needs need, CancelToken token);
  Async<Prices> prices(std::string size, CancelToken token);
  // The changes of spot prices since since_us, oldest first; each size starts with its price at since_us.
  Async<std::vector<PricePoint>> spot_history(std::vector<std::string> sizes, std::int64_t since_us, CancelToken token);
  // Creates the resource unless it exists, and waits until it is ready. Fails if Azure's operation fails later.
  Async<> put(std::string kind, std::string name, Value body, std::int64_t send_by_wall_us, CancelToken token);
  Async<VirtualMachine> describe(std::string name, CancelToken token);
  Async<Value> get(std::string kind, std::string name, CancelToken token);
  static Resource read_resource(std::string kind, const Value& v);
  Async<std::vector<Resource>> all_of(std::string kind, CancelToken token);  // in Rille's group and region
  // Deletes the resource; succeeds if it does not exist. `wait`: wait until it is deleted, for at most three minutes.
  // Does not retry after reserved_code.
  Async<> remove(std::string kind, std::string name, bool wait, CancelToken token);
  Error failed(const std::string& code, const std::string& name) const;
  // The calls from here on are in account.cpp.
  Async<Identity> identity(CancelToken token);  // the subscription only; the access token names the user
  Async<std::vector<Quota>> quotas(CancelToken token);
  // `action`: "deallocate" or "start". change_size fails unless the machine is deallocated. Both wait for completion.
  Async<> act(std::string name, std::string action, CancelToken token);
  Async<> change_size(std::string name, std::string size, CancelToken token);
  Async<> attach(std::string name, std::vector<Attached> volumes, CancelToken token);  // waits for completion

 private:
  std::string path_of(std::string_view kind) const;
  Async<Value> call(std::string method, std::string url, Value body, CancelToken token,
                    net::Effect effect = net::Effect::none);
  Async<Value::Array> pages(std::string url, CancelToken token);
  Async<> finished(Value answer, std::int64_t limit_ms, CancelToken token);

  Loop& loop_;
  std::string region_, base_url_, subscription_path_, group_path_, prices_url_;
  net::CredentialChain nobody_;  // a chain without keys, for the public price API
  net::Api api_, prices_api_;
};

// Properties of a security group that allows SSH from the ranges `from`, and nothing else from outside its network.
Value lets_ssh_in(const std::vector<std::string>& from);

// The minimal role definition that Rille's keys need, as JSON.
std::string policy();

}  // namespace rille::provider::azure
