// Rille's calls of Lambda Cloud's API; results are plain structs. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/account.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::lambda {

struct Instance {
  std::string id, status, tag, region, type, address;
};

// Reads the API key from LAMBDA_API_KEY or ~/.lambda_cloud/lambda_keys.
net::CredentialChain key_chain(Loop& loop);

class Instances {
 public:
  Instances(Loop& loop, net::CredentialChain& keys, const Value& endpoints);

  // One offer, with price, for each type in each region that has capacity for it; offer id: the type's name.
  Async<std::vector<Offer>> sold(CancelToken token);
  Async<std::string> launch(Value request, std::int64_t send_by_wall_us, CancelToken token);  // returns the new id
  Async<Instance> describe(std::string id, CancelToken token);  // error with http_status 404: no such instance
  Async<std::vector<Instance>> list(CancelToken token);
  Async<> terminate(std::string id, CancelToken token);  // error with http_status 404: no such instance
  std::int64_t skew_us() const { return api_.skew_us(); }
  Async<Identity> identity(CancelToken token);  // who "": Lambda's API does not name the key's owner
  // Uploads the public SSH key under `name`, unless a key with that name exists.
  Async<> offer_key(std::string name, std::string public_line, CancelToken token);

 private:
  Async<Value> call(std::string operation, std::string method, std::string path, Value body, net::Effect effect,
                    CancelToken token);

  std::string url_;
  net::Api api_;
};

inline constexpr const char* tag_key = "rille";

}  // namespace rille::provider::lambda
