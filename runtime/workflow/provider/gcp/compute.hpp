// Rille's calls of the APIs of Compute Engine and Cloud Billing; results are plain structs. Loop thread only.
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
  std::int64_t started_wall_us = 0, stopped_wall_us = 0;  // latest start and latest stop; 0: never
  std::vector<std::string> disks, volumes;  // names: the attached disks; the volumes that it is to have, in order
};

// One region's prices in nano-dollars per hour, by part: "N1 Core" (per vCPU), "N1 Ram" (per GiB), "T4" (per GPU).
using PartPrices = std::map<std::string, std::int64_t>;
struct PriceList {
  PartPrices now, year, three_years;  // now: spot, or on demand without a commitment; year, three_years: committed
};

struct Disk {
  std::string zone, name, tag, status;
  bool used = false, is_volume = false;  // is_volume: it has the label volume_key
};

struct Rule {
  std::string name, tag, region;  // tag and region "": a firewall rule that Rille did not make
};

class Compute {
 public:
  Compute(Loop& loop, net::CredentialChain& keys, std::string region, std::string project, const Value& endpoints);

  const std::string& region() const { return region_; }
  std::int64_t skew_us() const { return api_.skew_us(); }
  // The zone's machine types as offers without prices. Offer ids: "a2-highgpu-1g", "n1-standard-8+nvidia-tesla-t4:1".
  Async<std::vector<Offer>> types(std::string zone, CancelToken token);
  Async<PriceList> prices(bool spot, CancelToken token);
  // Creates the instance and waits for Google's operation, which may fail for lack of capacity. Succeeds if an instance
  // with that name and Rille's label exists.
  Async<> insert(std::string zone, Value instance, std::string request_id, std::int64_t send_by_wall_us,
                 CancelToken token);
  Async<Instance> describe(std::string zone, std::string name, CancelToken token);
  Async<std::vector<Instance>> list(CancelToken token);  // the region's instances with Rille's label
  Async<> remove(std::string zone, std::string name, CancelToken token);
  Async<std::vector<Disk>> disks(CancelToken token);  // the region's disks with Rille's label
  Async<Disk> describe_disk(std::string zone, std::string name, CancelToken token);
  // As insert(), for a disk.
  Async<> insert_disk(std::string zone, Value disk, std::string request_id, std::int64_t send_by_wall_us,
                      CancelToken token);
  Async<> remove_disk(std::string zone, std::string name, CancelToken token);
  // In firewall.cpp. Allows SSH to machines with `network_tag` only from the address ranges `from`. `rule`: prefix of
  // the names of the two firewall rules.
  Async<> narrow_ssh(std::string network_tag, std::string rule, std::string tag, std::string network,
                     std::vector<std::string> from, CancelToken token);
  Async<std::vector<Rule>> rules(CancelToken token);  // Rille's firewall rules for the region
  Async<Rule> describe_rule(std::string name, CancelToken token);
  Async<> remove_rule(std::string name, CancelToken token);  // waits until the rule is deleted
  // `action`: "stop", "start", "setMachineType" or "attachDisk". Waits until Google has finished the operation.
  Async<> act(std::string zone, std::string name, std::string action, Value body, CancelToken token);
  // In account.cpp. `account`, `key_id`: service account and id of its key; "": the keys are of no service account.
  Async<Identity> identity(std::string account, std::string key_id, CancelToken token);
  Async<std::vector<Quota>> quotas(CancelToken token);

 private:
  // Creates a resource of the zone, `kind` "instances" or "disks", and waits for Google's operation.
  Async<> make(std::string kind, std::string zone, Value resource, std::string request_id, std::int64_t send_by_wall_us,
               CancelToken token);
  // Waits until the operation has ended, and returns its error. zone "": a global operation. `what`: for the message.
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

// The minimal IAM role that Rille's keys need.
std::string policy();

inline constexpr const char* tag_key = "rille";
inline constexpr const char* tag_item =
    "rille-tag";  // metadata item with the full tag, if the tag is not a valid label
inline constexpr const char* volume_key = "rille-volume";     // label of a volume
inline constexpr const char* volumes_item = "rille-volumes";  // metadata item with the names of a machine's volumes

// The hourly price of an offer from types(): the sum of its parts; price_unknown if a part has no price.
Micros price_of(const Offer& offer, const PartPrices& prices);
// The parts of an offer's id. gpu "", count 0: no attached GPUs.
struct TypeName {
  std::string machine, gpu;
  int count = 0;
  std::string zone;  // "": use the first zone of the settings
};
// Splits an offer's id without its region prefix: "n1-standard-8+nvidia-tesla-t4:1@us-central1-b".
TypeName read_type(const std::string& id);
// Whether machines of that type cannot be live-migrated, even without an attached GPU:
// https://cloud.google.com/compute/docs/instances/live-migration-process
bool cannot_move(const std::string& machine);
// The default kind of boot disk for a machine type; newer families take only Hyperdisk:
// https://cloud.google.com/compute/docs/disks/hyperdisks
const char* usual_disk_kind(const std::string& machine);

}  // namespace rille::provider::gcp
