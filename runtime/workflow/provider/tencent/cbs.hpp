// The API of Tencent Cloud's disk service CBS: volumes, and disks that outlived their machines. Loop thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::tencent {

// A disk with a tag of Rille: of a machine, or a volume, which outlives machines.
struct Disk {
  std::string id, tag, state, zone, machine;  // machine: the instance that it is attached to; "": to none
  bool is_volume = false;
};

class Cbs {
 public:
  Cbs(Loop& loop, net::CredentialChain& keys, const std::string& region, const Value& endpoints);

  Async<std::vector<Disk>> disks(CancelToken token);                   // all disks with Rille's tag
  Async<std::optional<Disk>> disk(std::string id, CancelToken token);  // whatever tags it has; nullopt: no such disk
  Async<std::vector<Disk>> disks_of(std::string instance, CancelToken token);
  Async<std::string> create(Value request, std::int64_t send_by_wall_us, CancelToken token);  // returns the new id
  Async<> attach(std::string disk, std::string instance, CancelToken token);
  Async<> remove(std::string disk, CancelToken token);
  // The hourly price of a whole disk. price_unknown: CBS returned no hourly price.
  Async<Micros> price(std::string kind, std::int64_t size_gb, CancelToken token);

 private:
  Async<std::vector<Disk>> disk_rows(const char* filter, std::string value, CancelToken token);
  Async<Value> call(std::string action, Value request, net::Effect effect, CancelToken token);

  std::string url_;
  net::Api api_;
};

}  // namespace rille::provider::tencent
