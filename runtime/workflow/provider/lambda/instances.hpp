// Lambda Cloud's API as plain values. Lambda's own names are used only here. Loop thread only.
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

// From the environment or ~/.lambda_cloud/lambda_keys.
net::CredentialChain key_chain(Loop& loop);

class Instances {
 public:
  Instances(Loop& loop, net::CredentialChain& keys, const Value& endpoints);

  // One offer per type and region with capacity, with prices; id: the type's name.
  Async<std::vector<Offer>> sold(CancelToken token);
  Async<std::string> launch(Value request, std::int64_t send_by_wall_us, CancelToken token);  // the new instance's id
  Async<Instance> describe(std::string id, CancelToken token);                                // http_status 404
  Async<std::vector<Instance>> list(CancelToken token);
  Async<> terminate(std::string id, CancelToken token);  // http_status 404
  std::int64_t skew_us() const { return api_.skew_us(); }
  Async<Identity> identity(CancelToken token);  // the API returns no name
  // Uploads the key under that name, unless the name exists.
  Async<> offer_key(std::string name, std::string public_line, CancelToken token);

 private:
  Async<Value> call(std::string operation, std::string method, std::string path, Value body, net::Effect effect,
                    CancelToken token);

  std::string url_;
  net::Api api_;
};

inline constexpr const char* tag_key = "rille";

}  // namespace rille::provider::lambda
