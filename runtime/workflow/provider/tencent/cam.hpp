// The identity at Tencent Cloud: STS and CAM as plain values. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/account.hpp"

namespace rille::provider::tencent {

class Cam {
 public:
  // `endpoints`: overrides of "sts" and "cam", for tests.
  Cam(Loop& loop, net::CredentialChain& keys, const std::string& region, const Value& endpoints);

  // From STS, which needs no right; the age of a permanent key from CAM.
  Async<Identity> identity(CancelToken token);
  Async<std::string> account(CancelToken token);  // by STS alone
  std::int64_t skew_us() const { return sts_.skew_us(); }

 private:
  Async<Value> caller(CancelToken token);
  Async<Value::Array> keys_of_user(CancelToken token);

  net::CredentialChain& keys_;
  std::string sts_url_, cam_url_;
  net::Api sts_, cam_;
};

// The minimal policy that the keys need.
std::string policy();

}  // namespace rille::provider::tencent
