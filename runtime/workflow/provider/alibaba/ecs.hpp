// Rille's calls of the API of Alibaba Cloud's ECS; results are plain structs. Loop thread only.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/net/credentials/alibaba/service.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/cloud/prices.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::alibaba {

using Parameters = std::vector<std::pair<std::string, std::string>>;

struct Instance {
  std::string id, status, tag, zone, type, address, private_address;
  std::vector<std::string> volumes;  // ids of the volumes that it shall have
  std::int64_t created_wall_us = 0;
  bool reclaimed = false;  // a spot instance that Alibaba Cloud takes away within minutes
};

// A disk with a tag of Rille: of a machine, or a volume, which outlives machines.
struct Disk {
  std::string id, tag, status, zone, machine;  // machine: the instance that it is attached to; "": to none
  bool is_volume = false;
};

// Options whose error table has the codes of ECS and RAM and those that all Alibaba Cloud services share.
net::ApiOptions api_options(std::string api_version);
using net::alibaba::parts_for;

class Ecs {
 public:
  Ecs(Loop& loop, net::CredentialChain& keys, std::string region, const Value& endpoints);

  const std::string& region() const { return region_; }
  Async<std::vector<Offer>> types(CancelToken token);  // instance types without prices; id: type name
  // Names of the instance types with capacity in the zone; "": in any zone of the region. One API call.
  Async<std::set<std::string>> in_stock(std::string zone, bool spot, CancelToken token);
  // The price of a machine without its disk. `reserved`: also with a commitment of 1 and 3 years, one API call each.
  Async<cloud::Price> price(std::string type, std::string disk_kind, bool spot, bool reserved, CancelToken token);
  // Returns the new instance's id.
  Async<std::string> run(Parameters parameters, std::int64_t send_by_wall_us, CancelToken token);
  Async<> set_release(std::string id, std::int64_t wall_us, CancelToken token);     // sets AutoReleaseTime
  Async<std::vector<Instance>> describe(Parameters parameters, CancelToken token);  // requests all pages
  Async<> terminate(std::string id, CancelToken token);
  Async<std::vector<Disk>> disks(CancelToken token);                   // all disks with Rille's tag
  Async<std::optional<Disk>> disk(std::string id, CancelToken token);  // whatever tags it has; nullopt: no such disk
  Async<std::vector<Disk>> disks_of(std::string instance, CancelToken token);
  Async<std::string> create_disk(Parameters parameters, std::int64_t send_by_wall_us, CancelToken token);  // its id
  Async<> attach(std::string disk, std::string instance, CancelToken token);
  Async<> delete_disk(std::string id, CancelToken token);
  Async<cloud::Price> disk_price(std::string kind, std::int64_t size_gb, CancelToken token);  // of the whole disk
  // Changing an instance's type: stop, change_type, start. change_type fails unless the instance is stopped.
  Async<> stop(std::string id, CancelToken token);
  Async<> change_type(std::string id, std::string type, CancelToken token);
  Async<> start(std::string id, CancelToken token);
  // The changes of a type's spot price since since_us; Alibaba Cloud keeps the last 30 days.
  Async<std::vector<PricePoint>> spot_history(std::string type, std::int64_t since_us, CancelToken token);
  Async<std::vector<Quota>> quotas(CancelToken token);

 private:
  Async<Value> call(std::string action, Parameters parameters, net::Effect effect, CancelToken token);
  Async<std::vector<Disk>> disk_rows(Parameters parameters, CancelToken token);
  // Requests all pages and joins their rows, the array at response[group][row].
  Async<Value::Array> rows_of(std::string action, Parameters parameters, const char* group, const char* row,
                              CancelToken token);

  std::string region_, url_;
  net::Api api_;
};

inline constexpr const char *tag_key = "rille", *volume_key = "rille-volume";  // a volume has both

}  // namespace rille::provider::alibaba
