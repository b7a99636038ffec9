// EC2's calls, as plain values: what goes in, what comes out. Everything that EC2 calls by its own names is known here
// and nowhere else. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/provider/cloud/api.hpp"
#include "runtime/provider/types.hpp"

namespace rille::provider::aws {

using Parameters = std::vector<std::pair<std::string, std::string>>;

struct InstanceType {
  std::string name, gpu;                // gpu: the model; "" without
  int gpu_count = 0, vcpus = 0;
  std::int64_t gpu_memory_bytes = 0, memory_bytes = 0;
  bool spot = false;
};

struct Instance {
  std::string id, state, tag, token, zone, type, address, reason;
  std::int64_t launched_wall_us = 0;
  bool spot = false;
};

class Ec2 {
 public:
  // `endpoints`: "ec2" and "pricing" by other addresses than Amazon's, as a test has them.
  Ec2(Loop& loop, cloud::CredentialChain& keys, std::string region, const Value& endpoints);

  const std::string& region() const { return region_; }
  Async<std::vector<InstanceType>> types(CancelToken token);
  // Dollars per hour by the type's name; of those that are not in it the price is not known.
  Async<std::map<std::string, Micros>> spot_prices(std::vector<std::string> types, CancelToken token);
  Async<std::optional<Micros>> price(std::string type, CancelToken token);

  Async<Instance> run(Parameters parameters, CancelToken token);
  // Those that the parameters name or filter, all pages.
  Async<std::vector<Instance>> describe(Parameters parameters, CancelToken token);
  Async<> terminate(std::string id, CancelToken token);
  // Disks that bear a tag of ours and belong to no machine: (id, tag).
  Async<std::vector<std::pair<std::string, std::string>>> loose_disks(CancelToken token);
  Async<> delete_disk(std::string id, CancelToken token);
  // The newest image that fits, and the group that lets ssh in, made if there is none. Free of charge.
  Async<std::string> image(std::string owner, std::string name_pattern, CancelToken token);
  Async<std::string> security_group(std::string name, CancelToken token);

 private:
  Async<Value> call(std::string action, Parameters parameters, cloud::Effect effect, CancelToken token);
  Async<Value> page_through(std::string action, Parameters parameters, std::string list, CancelToken token);

  std::string region_, ec2_, pricing_;
  cloud::Api api_, pricing_api_;
};

inline constexpr const char* tag_key = "rille";

}  // namespace rille::provider::aws
