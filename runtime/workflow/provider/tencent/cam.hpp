// The identity of the access keys at Tencent Cloud, from STS and CAM. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/account.hpp"

namespace rille::provider::tencent {

class Cam {
 public:
  // `endpoints`: overrides of "sts" and "cam", for tests.
  Cam(Loop& loop, net::CredentialChain& keys, const std::string& region, const Value& endpoints);

  // Asks STS, which needs no permission, and CAM for the age of a permanent key.
  Async<Identity> identity(CancelToken token);
  Async<std::string> account(CancelToken token);  // the account's id, from STS
  std::int64_t skew_us() const { return sts_.skew_us(); }

 private:
  Async<Value> caller(CancelToken token);
  Async<Value::Array> keys_of_user(CancelToken token);

  net::CredentialChain& keys_;
  std::string sts_url_, cam_url_;
  net::Api sts_, cam_;
};

// The minimal CAM policy that Rille's keys need, as JSON.
std::string policy();

}  // namespace rille::provider::tencent
