// ECS's calls, as plain values, with those of IAM (projects) and BSS (prices) that renting needs. What Huawei calls by
// its own names is known here and nowhere else. Loop thread only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/core/net/credentials/huawei/keys.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/cloud/prices.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::huawei {

struct Server {
  std::string id, status, task, tag, zone, type, address, private_address, problem;
  std::int64_t created_wall_us = 0;
};

using net::huawei::domain_of;

class Ecs {
 public:
  // `project`: "" asks IAM for the one that bears the region's name.
  Ecs(Loop& loop, net::CredentialChain& keys, std::string region, std::string project, const Value& endpoints);

  const std::string& region() const { return region_; }
  // Without prices; id: the flavor's name. Those that this zone ("": any) has now.
  Async<std::vector<Offer>> flavors(std::string zone, bool spot, CancelToken token);
  // `reserved`: for years, too, which is a second call.
  Async<cloud::Price> price(std::string flavor, std::string zone, bool spot, bool reserved, CancelToken token);
  // Waits for the job: stock runs out there. A server that could not be made is deleted before the error is given.
  // The new server's id.
  Async<std::string> create(Value server, std::string client_token, std::int64_t send_by_wall_us, CancelToken token);
  Async<Server> describe(std::string id, CancelToken token);
  Async<std::vector<Server>> list(CancelToken token);  // all pages; those that bear our tag
  Async<> remove(std::string id, CancelToken token);   // with its disks and its address
  // evs.cpp: disks that bear our tag and belong to no server: ids and tags.
  Async<std::vector<std::pair<std::string, std::string>>> loose_disks(CancelToken token);
  Async<> remove_disk(std::string id, CancelToken token);
  // Stops it, changes it and starts it again; waits for that job.
  Async<> resize(std::string id, std::string flavor, CancelToken token);
  // account.cpp
  Async<Identity> identity(std::string key_id, CancelToken token);
  Async<std::vector<Quota>> quotas(CancelToken token);
  std::int64_t skew_us() const { return api_.skew_us(); }
  Async<std::string> domain(CancelToken token);  // the account's id, whatever the project

 private:
  Async<Value> call(std::string method, std::string path, net::Query query, Value body, net::Effect effect,
                    CancelToken token, std::string client_token = "");
  Async<std::string> project(CancelToken token);
  Async<cloud::Price> add_reserved(cloud::Price price, Value product, CancelToken token);
  Async<Value> finished(std::string job, std::int64_t limit_ms, CancelToken token);
  Async<> clear(std::vector<std::string> ids, CancelToken token);
  Error refused(Error error) const;

  Loop& loop_;
  std::string region_, project_, ecs_url_, evs_url_, iam_url_, bss_url_, other_bss_url_;
  net::Api api_;
};

// The least that the keys must be allowed.
std::string policy();

inline constexpr const char* tag_key = "rille";

}  // namespace rille::provider::huawei
