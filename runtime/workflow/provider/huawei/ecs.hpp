// Rille's calls of Huawei's APIs: ECS, IAM (projects) and BSS (prices). Results are plain structs. Loop thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/core/net/credentials/huawei/keys.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/cloud/prices.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::huawei {

struct Server {
  std::string id, status, task, tag, zone, type, address, private_address, problem;
  std::vector<std::string> volumes, disks;  // ids of the volumes that it shall have, and of the disks that it has
  std::int64_t created_wall_us = 0;
};

// A disk that Rille has made: of a server, or a volume, which outlives servers.
struct Disk {
  std::string id, tag, status, zone;
  bool attached = false, is_volume = false;
};

using net::huawei::domain_of;

// The address of a service ("ecs", "evs", "iam", "bss", "bss-intl") in a region, if the settings have no `endpoints`.
std::string address_of(const std::string& service, const std::string& region);

class Ecs {
 public:
  // `project`: the project's id; "": use the project with the region's name, whose id is requested from IAM.
  Ecs(Loop& loop, net::CredentialChain& keys, std::string region, std::string project, const Value& endpoints);

  const std::string& region() const { return region_; }
  // The flavors on sale in the zone ("": in any zone) as offers without prices; offer id: the flavor's name.
  Async<std::vector<Offer>> flavors(std::string zone, bool spot, CancelToken token);
  // The hourly price of a flavor. `reserved`: also request the prices with a commitment, by one more API call.
  Async<cloud::Price> price(std::string flavor, std::string zone, bool spot, bool reserved, CancelToken token);
  // Returns the new server's id. Waits for Huawei's job, and deletes the server if the job fails for lack of capacity.
  Async<std::string> create(Value server, std::string client_token, std::int64_t send_by_wall_us, CancelToken token);
  Async<Server> describe(std::string id, CancelToken token);
  Async<std::vector<Server>> list(CancelToken token);  // all servers with Rille's tag
  Async<> remove(std::string id, CancelToken token);   // deletes the server, its own disk and its public address
  // In evs.cpp:
  Async<std::vector<Disk>> disks(CancelToken token);                   // all disks that Rille has made
  Async<std::optional<Disk>> disk(std::string id, CancelToken token);  // whatever tags it has; nullopt: no such disk
  Async<std::string> create_disk(Value disk, std::string client_token, std::int64_t send_by_wall_us,
                                 CancelToken token);  // returns the new disk's id
  Async<> attach(std::string disk, std::string server, CancelToken token);
  Async<> remove_disk(std::string id, CancelToken token);
  // The hourly price of a whole disk.
  Async<cloud::Price> disk_price(std::string kind, std::int64_t size_gb, std::string zone, CancelToken token);
  // Stops the server, changes its flavor and starts it, by one job of Huawei, and waits until that job ends.
  Async<> resize(std::string id, std::string flavor, CancelToken token);
  // identity, quotas and domain are in account.cpp.
  Async<Identity> identity(std::string key_id, CancelToken token);
  Async<std::vector<Quota>> quotas(CancelToken token);
  std::int64_t skew_us() const { return api_.skew_us(); }
  Async<std::string> domain(CancelToken token);  // the account's id, the same for all projects

 private:
  Async<Value> call(std::string method, std::string path, net::Query query, Value body, net::Effect effect,
                    CancelToken token, std::string client_token = "");
  Async<std::string> project(CancelToken token);
  Async<cloud::Price> add_reserved(cloud::Price price, Value product, CancelToken token);
  Async<Value::Array> flavor_rows(std::string zone, CancelToken token);
  Async<Value> finished(std::string job, std::int64_t limit_ms, CancelToken token);
  Async<> clear(std::vector<std::string> ids, CancelToken token);
  Error refused(Error error) const;

  Loop& loop_;
  std::string region_, project_, ecs_url_, evs_url_, iam_url_, bss_url_, other_bss_url_;
  net::Api api_;
};

// The minimal IAM policy that Rille's keys need, as JSON.
std::string policy();

inline constexpr const char *tag_key = "rille", *volume_key = "rille-volume";  // a volume has both

// Huawei limits a tag's value to 43 characters (PostPaidServerTag in its SDK), and a lease's tag has 48: "rille-" is
// left out and the last two marks are dots. `full_tag` also reads the values that earlier versions wrote in full.
inline constexpr std::size_t tag_value_max = 43;
std::string short_tag(const std::string& tag);
std::string full_tag(const std::string& value);

}  // namespace rille::provider::huawei
