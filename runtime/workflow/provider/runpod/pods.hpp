// Rille's calls of RunPod's API: REST v2, and GraphQL for bids and the number of CPUs per GPU. Loop thread only.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::runpod {

// A GPU model that RunPod sells, and its price.
struct Sold {
  std::string id, name;           // id: "NVIDIA A100-SXM4-80GB"; name: "A100 SXM"
  std::int64_t memory_bytes = 0;  // of one GPU
  Micros micros_per_gpu_hour = 0;
  std::vector<std::string> centers;  // data centers that have capacity for this GPU
};

// The least equipment of a pod with a certain number of GPUs, and its minimum bid; each is 0 if unknown.
struct Shape {
  int vcpus = 0;
  std::int64_t memory_bytes = 0;
  Micros bid_micros_per_gpu_hour = 0;
};
using Shapes = std::map<std::pair<std::string, int>, Shape>;  // by GPU model id and number of GPUs

// A network volume: a folder of one data center that pods there mount from their creation on.
struct NetworkVolume {
  std::string id, name, center, type;  // type: "STANDARD" or "HIGH_PERFORMANCE"
  std::int64_t size_gb = 0;
};

struct Order {
  std::string name, image, start_command, gpu, center;
  std::string volume, mount_path;  // of a network volume; "": none
  int count = 1;
  std::int64_t disk_gb = 0;
  Micros bid_micros_per_gpu_hour = 0;  // maximum price of an interruptible pod; 0: on demand
  std::int64_t send_by_wall_us = 0;
};

struct Pod {
  std::string id, name, status, center, type, address;
  std::vector<std::string> volumes;  // ids of its network volumes
  int port = 0;
  std::int64_t created_wall_us = 0;
  Micros micros_per_hour = price_unknown;
};

net::CredentialChain key_chain(Loop& loop);

class Pods {
 public:
  Pods(Loop& loop, net::CredentialChain& keys, const Value& endpoints);

  Async<std::vector<Sold>> sold(int count, CancelToken token);
  // By GraphQL; is_graphql_gone: RunPod has ended it.
  Async<Shapes> shapes(std::vector<int> counts, CancelToken token);
  Async<std::string> create(Order order, CancelToken token);  // returns the new pod's id
  Async<Pod> describe(std::string id, CancelToken token);     // error with http_status 404: no such pod
  Async<std::vector<Pod>> list(CancelToken token);
  Async<> terminate(std::string id, CancelToken token);  // error with http_status 404: no such pod
  // The data centers that have network volumes of that type.
  Async<std::vector<std::string>> centers_of(std::string volume_type, CancelToken token);
  Async<NetworkVolume> create_volume(NetworkVolume order, std::int64_t send_by_wall_us, CancelToken token);
  Async<NetworkVolume> volume(std::string id, CancelToken token);  // error with http_status 404: no such volume
  Async<std::vector<NetworkVolume>> volumes(CancelToken token);
  Async<> delete_volume(std::string id, CancelToken token);
  Async<Identity> identity(CancelToken token);
  std::int64_t skew_us() const { return rest_.skew_us(); }
  Async<std::string> account(CancelToken token);  // the account's id

 private:
  Async<Value> me(CancelToken token);
  Async<Value> ask(std::string operation, std::string query, Value variables, net::Effect effect, CancelToken token);

  std::string rest_url_, graphql_url_;
  net::Api rest_, graphql_, queries_;
};

bool is_graphql_gone(const Error& error);

}  // namespace rille::provider::runpod
