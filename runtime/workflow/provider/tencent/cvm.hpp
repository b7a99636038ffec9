// Rille's calls of the API of Tencent Cloud's CVM; results are plain structs. Loop thread only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/net/credentials/tencent/service.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::tencent {

struct Instance {
  std::string id, state, tag, zone, type, address, private_address, problem;
  std::vector<std::string> volumes;  // ids of the volumes that it shall have
  std::int64_t created_wall_us = 0;
};

// Options whose error table has the codes of CVM, CBS and CAM and those that all Tencent Cloud services share.
net::ApiOptions api_options(std::string service, std::string version, std::string region);
using net::tencent::parts_for;

class Cvm {
 public:
  Cvm(Loop& loop, net::CredentialChain& keys, std::string region, const Value& endpoints);

  const std::string& region() const { return region_; }
  // The instance types on sale, with prices; offer id: the type's name. zone "": each type in its cheapest zone.
  Async<std::vector<Offer>> sold(std::string zone, bool spot, CancelToken token);
  // The hourly spot price of a type in a zone, also when the type is sold out. price_unknown: CVM returned no price.
  Async<Micros> spot_price(std::string type, std::string zone, CancelToken token);
  Async<std::string> run(Value request, std::int64_t send_by_wall_us, CancelToken token);  // returns the new id
  Async<std::vector<Instance>> describe(Value request, CancelToken token);                 // requests all pages
  Async<> terminate(std::string id, CancelToken token);
  // Changing an instance's type: stop, change_type, start. change_type fails unless the instance is stopped.
  Async<> stop(std::string id, CancelToken token);
  Async<> change_type(std::string id, std::string type, CancelToken token);
  Async<> start(std::string id, CancelToken token);
  Async<std::vector<Quota>> quotas(CancelToken token);

 private:
  // The GPUs of an instance type; model and memory may be missing in the API's response.
  struct Gpus {
    double count = 0;  // below 1: a fraction of a GPU
    std::string model;
    std::int64_t memory_bytes = 0;  // of one GPU
  };
  Async<> learn_gpus(std::string zone, CancelToken token);
  // Sets the offer's GPU fields. False: the type has only a fraction of a GPU and is not offered.
  bool read_gpus(const Value& row, Offer& offer) const;
  Async<> act(std::string action, std::string id, Value more, net::Effect effect, CancelToken token);
  Async<Value> call(std::string action, Value request, net::Effect effect, CancelToken token);

  std::string region_, url_;
  net::Api api_;
  std::map<std::string, Gpus> gpus_;  // by instance type name
  std::int64_t gpus_at_us_ = 0;
};

inline constexpr const char *tag_key = "rille", *volume_key = "rille-volume";  // a volume has both
inline constexpr const char* by_use = "POSTPAID_BY_HOUR";

Micros hourly_of(const Value& price);  // of a price in the API's form; price_unknown: it is not by the hour

}  // namespace rille::provider::tencent
