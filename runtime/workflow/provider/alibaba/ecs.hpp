// ECS's API as plain values. ECS's own names are used only here. Loop thread only.
#pragma once

#include <memory>
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
  std::int64_t created_wall_us = 0;
  bool reclaimed = false;  // preemption notice: it will be taken away within minutes
};

// Knows the error codes of ECS and RAM besides those that all services share.
net::ApiOptions api_options(std::string api_version);
using net::alibaba::parts_for;

class Ecs {
 public:
  Ecs(Loop& loop, net::CredentialChain& keys, std::string region, const Value& endpoints);

  const std::string& region() const { return region_; }
  Async<std::vector<Offer>> types(CancelToken token);  // without prices; id: the type's name
  // The types with capacity in the zone ("": in any of the region); one call.
  Async<std::set<std::string>> in_stock(std::string zone, bool spot, CancelToken token);
  // The price of the machine without its disk. `reserved`: also with a commitment, one more call per term.
  Async<cloud::Price> price(std::string type, std::string disk_kind, bool spot, bool reserved, CancelToken token);
  // Returns the new instance's id.
  Async<std::string> run(Parameters parameters, std::int64_t send_by_wall_us, CancelToken token);
  Async<> set_release(std::string id, std::int64_t wall_us, CancelToken token);     // AutoReleaseTime
  Async<std::vector<Instance>> describe(Parameters parameters, CancelToken token);  // all pages
  Async<> terminate(std::string id, CancelToken token);
  // Unattached disks with our tag: (id, tag).
  Async<std::vector<std::pair<std::string, std::string>>> loose_disks(CancelToken token);
  Async<> delete_disk(std::string id, CancelToken token);
  // change_type needs a stopped instance.
  Async<> stop(std::string id, CancelToken token);
  Async<> change_type(std::string id, std::string type, CancelToken token);
  Async<> start(std::string id, CancelToken token);
  // At most the last 30 days.
  Async<std::vector<PricePoint>> spot_history(std::string type, std::int64_t since_us, CancelToken token);
  Async<std::vector<Quota>> quotas(CancelToken token);

 private:
  Async<Value> call(std::string action, Parameters parameters, net::Effect effect, CancelToken token);
  // The rows at response[group][row], all pages.
  Async<Value::Array> rows_of(std::string action, Parameters parameters, const char* group, const char* row,
                              CancelToken token);

  std::string region_, url_;
  net::Api api_;
};

inline constexpr const char* tag_key = "rille";

}  // namespace rille::provider::alibaba
