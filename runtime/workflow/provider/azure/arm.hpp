// The APIs of Azure Resource Manager and of the retail prices as plain values. Azure's own names are used only here.
// Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::azure {

inline constexpr const char* tag_key = "rille";
inline constexpr std::string_view machines = "virtualMachines", disks = "disks", interfaces = "networkInterfaces",
                                  addresses = "publicIPAddresses", groups = "networkSecurityGroups";

// For an interface whose machine could not be created: Azure reserves it for that machine for three minutes.
inline constexpr const char* reserved_code = "NicReservedForAnotherVm";

struct Prices {
  Micros on_demand = price_unknown, spot = price_unknown;
  Micros reserved_1y = price_unknown, reserved_3y = price_unknown;  // per hour
};

struct Resource {
  std::string kind, name, tag, location;  // kind: one of those above
};

struct VirtualMachine {
  std::string name, tag, type, location, provisioning, power, failure;  // failure: the error code, if it failed
  std::int64_t created_wall_us = 0;
};

// Requirements on a size.
struct Needs {
  bool premium_disk = false, generation_2 = false;  // generation_2: the VM generation of the image
};

class Arm {
 public:
  Arm(Loop& loop, net::CredentialChain& keys, std::string region, const std::string& subscription,
      const std::string& group, const Value& endpoints);

  const std::string& region() const { return region_; }
  std::int64_t skew_us() const { return api_.skew_us(); }
  // The id of a resource in our group, for references from other resources.
  std::string id_of(std::string_view kind, const std::string& name) const;
  // Without prices; id: the size's name.
  Async<std::vector<Offer>> sizes(std::string zone, bool spot, Needs need, CancelToken token);
  Async<Prices> prices(std::string size, CancelToken token);
  // Spot prices since then, oldest first; the first point is the price at since_us.
  Async<std::vector<PricePoint>> spot_history(std::vector<std::string> sizes, std::int64_t since_us, CancelToken token);
  // Creates the resource or finds it, and waits until it is ready. Returns the error of an operation that fails later.
  Async<> put(std::string kind, std::string name, Value body, std::int64_t send_by_wall_us, CancelToken token);
  Async<VirtualMachine> describe(std::string name, CancelToken token);
  Async<Value> get(std::string kind, std::string name, CancelToken token);
  Async<std::vector<Resource>> all_of(std::string kind, CancelToken token);  // in our group and region; tag "": none
  // Success if it is gone or never existed. `wait`: until it is gone, a few minutes at most. One attempt: an error with
  // reserved_code is returned at once.
  Async<> remove(std::string kind, std::string name, bool wait, CancelToken token);
  Error failed(const std::string& code, const std::string& name) const;
  // account.cpp
  Async<Identity> identity(CancelToken token);  // of the subscription; the user is in the token itself
  Async<std::vector<Quota>> quotas(CancelToken token);
  // `action` on a machine: "deallocate" or "start". change_size needs a deallocated machine. Both wait for completion.
  Async<> act(std::string name, std::string action, CancelToken token);
  Async<> change_size(std::string name, std::string size, CancelToken token);

 private:
  std::string path_of(std::string_view kind) const;
  Async<Value> call(std::string method, std::string url, Value body, CancelToken token,
                    net::Effect effect = net::Effect::none);
  Async<Value::Array> pages(std::string url, CancelToken token);
  Async<> finished(Value answer, std::int64_t limit_ms, CancelToken token);

  Loop& loop_;
  std::string region_, base_url_, subscription_path_, group_path_, prices_url_;
  net::CredentialChain nobody_;  // empty: the price API is public
  net::Api api_, prices_api_;
};

// A security group that allows SSH from these ranges and no other traffic from outside its network.
Value lets_ssh_in(const std::vector<std::string>& from);

// The minimal role definition that the keys need.
std::string policy();

}  // namespace rille::provider::azure
