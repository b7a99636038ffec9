// The APIs of Compute Engine and of Cloud Billing's price list as plain values. Google's own names are used only here.
// Loop thread only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::gcp {

struct Instance {
  std::string zone, name, status, tag, type, address, private_address;
  std::int64_t created_wall_us = 0;
  std::int64_t started_wall_us = 0, stopped_wall_us = 0;  // the latest; 0: never
};

// Nano-dollars per hour in one region: "N1 Core", "N1 Ram" (per GiB), "T4" (each).
using PartPrices = std::map<std::string, std::int64_t>;
struct PriceList {
  PartPrices now, year, three_years;  // now: without a commitment, or spot; the others: with that commitment
};

struct Disk {
  std::string zone, name, tag;
  bool used = false;
};

struct Rule {
  std::string name, tag, region;  // "": not Rille's
};

class Compute {
 public:
  Compute(Loop& loop, net::CredentialChain& keys, std::string region, std::string project, const Value& endpoints);

  const std::string& region() const { return region_; }
  std::int64_t skew_us() const { return api_.skew_us(); }
  // Without prices; id: "n1-standard-8+nvidia-tesla-t4:1" with attached GPUs, else the type's name.
  Async<std::vector<Offer>> types(std::string zone, CancelToken token);
  Async<PriceList> prices(bool spot, CancelToken token);
  // Waits for the operation, since capacity errors occur there. Success if an instance of that name exists.
  Async<> insert(std::string zone, Value instance, std::string request_id, std::int64_t send_by_wall_us,
                 CancelToken token);
  Async<Instance> describe(std::string zone, std::string name, CancelToken token);
  Async<std::vector<Instance>> list(CancelToken token);  // in the region, all pages, with our label
  Async<> remove(std::string zone, std::string name, CancelToken token);
  Async<std::vector<Disk>> disks(CancelToken token);  // as list
  Async<Disk> describe_disk(std::string zone, std::string name, CancelToken token);
  Async<> remove_disk(std::string zone, std::string name, CancelToken token);
  // firewall.cpp. Allows SSH to the machines with that network tag only from those ranges. `rule`: prefix of the rule
  // names.
  Async<> narrow_ssh(std::string network_tag, std::string rule, std::string tag, std::string network,
                     std::vector<std::string> from, CancelToken token);
  Async<std::vector<Rule>> rules(CancelToken token);  // our rules for the region's machines
  Async<Rule> describe_rule(std::string name, CancelToken token);
  Async<> remove_rule(std::string name, CancelToken token);  // waits for the operation
  // "stop", "start", "setMachineType"; waits for the operation.
  Async<> act(std::string zone, std::string name, std::string action, Value body, CancelToken token);
  // account.cpp. `account`, `key_id`: of a service account; "": not a service account.
  Async<Identity> identity(std::string account, std::string key_id, CancelToken token);
  Async<std::vector<Quota>> quotas(CancelToken token);

 private:
  // zone "": a global operation.
  Async<> finished(std::string zone, Value operation, std::int64_t limit_ms, std::string what, CancelToken token);
  Async<Value> done(std::string zone, Value operation, std::int64_t limit_ms, CancelToken token);
  Async<> make_rule(Value rule, CancelToken token);
  Result<> result_of(const Value& operation, const std::string& what) const;
  Async<Value> call(std::string method, std::string path, net::Query query, Value body, net::Effect effect,
                    CancelToken token);
  Async<Value::Array> pages(std::string path, std::string kind, net::Query query, CancelToken token);

  Loop& loop_;
  std::string region_, url_, billing_url_, iam_url_;
  net::Api api_;
};

// The minimal role that the keys need.
std::string policy();

inline constexpr const char* tag_key = "rille";
inline constexpr const char* tag_item = "rille-tag";  // the tag as metadata, if it is not a valid label

// The price of an offer of types(), or price_unknown.
Micros price_of(const Offer& offer, const PartPrices& prices);
// The parts of an offer's id: machine type and attached GPUs ("", 0: none).
struct TypeName {
  std::string machine, gpu;
  int count = 0;
  std::string zone;  // "": the first zone of the settings
};
// `id`: without the region: "n1-standard-8+nvidia-tesla-t4:1@us-central1-b".
TypeName read_type(const std::string& id);
// Whether machines of that type cannot be live-migrated, even without an attached GPU:
// https://cloud.google.com/compute/docs/instances/live-migration-process
bool cannot_move(const std::string& machine);
// The default kind of a boot disk; newer families do not support persistent disks:
// https://cloud.google.com/compute/docs/disks/hyperdisks
const char* usual_disk_kind(const std::string& machine);

}  // namespace rille::provider::gcp
