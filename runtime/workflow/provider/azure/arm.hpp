// Resource Manager's calls, as plain values, with the retail prices. What Azure calls by its own names is known here
// and nowhere else. Loop thread only.
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

// Of an interface: its machine could not be made, and Azure keeps it for that one for three minutes.
inline constexpr const char* reserved_code = "NicReservedForAnotherVm";

struct Prices {
  Micros on_demand = price_unknown, spot = price_unknown;
  Micros reserved_1y = price_unknown, reserved_3y = price_unknown;  // of an hour
};

struct Resource {
  std::string kind, name, tag, location;  // kind: one of those above
};

struct VirtualMachine {
  std::string name, tag, type, location, provisioning, power, failure;  // failure: the code, of one that failed
  std::int64_t created_wall_us = 0;
};

// What a size has to have to start from our order.
struct Needs {
  bool premium_disk = false, generation_2 = false;  // of the virtual machine, for an image of that generation
};

class Arm {
 public:
  Arm(Loop& loop, net::CredentialChain& keys, std::string region, const std::string& subscription,
      const std::string& group, const Value& endpoints);

  const std::string& region() const { return region_; }
  std::int64_t skew_us() const { return api_.skew_us(); }
  // The path of a resource in our group, as other resources name it.
  std::string id_of(std::string_view kind, const std::string& name) const;
  // Without prices; id: the size's name.
  Async<std::vector<Offer>> sizes(std::string zone, bool spot, Needs need, CancelToken token);
  Async<Prices> prices(std::string size, CancelToken token);
  // What they cost as spot since then, oldest first; the price that stood at that time is told as of then.
  Async<std::vector<PricePoint>> spot_history(std::vector<std::string> sizes, std::int64_t since_us, CancelToken token);
  // Makes it, or finds that it is there, and waits until it is: an operation that fails later gives its error.
  Async<> put(std::string kind, std::string name, Value body, std::int64_t send_by_wall_us, CancelToken token);
  Async<VirtualMachine> describe(std::string name, CancelToken token);
  Async<Value> get(std::string kind, std::string name, CancelToken token);
  Async<std::vector<Resource>> all_of(std::string kind, CancelToken token);  // of our group and region; tag "": none
  // Gone, or never there: success. `wait`: until it is gone, some minutes at most. Once: an error with reserved_code is
  // not waited for.
  Async<> remove(std::string kind, std::string name, bool wait, CancelToken token);
  Error failed(const std::string& code, const std::string& name) const;
  // account.cpp
  Async<Identity> identity(CancelToken token);  // the subscription; whose the token is stands in the token
  Async<std::vector<Quota>> quotas(CancelToken token);
  // Of a machine. "deallocate", "start"; the size of a deallocated one can be changed. They wait until it is done.
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
  net::CredentialChain nobody_;  // prices are for everybody: no token goes there
  net::Api api_, prices_api_;
};

// What a group is made of that lets ssh in from these ranges, and nothing else from outside of its network.
Value lets_ssh_in(const std::vector<std::string>& from);

// The least that a role must be allowed.
std::string policy();

}  // namespace rille::provider::azure
