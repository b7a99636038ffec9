// Who we are at Amazon and what we may rent: STS, IAM and Service Quotas, as plain values. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/account.hpp"

namespace rille::provider::aws {

class Iam {
 public:
  // `endpoints`: "sts", "iam" and "servicequotas" by other addresses than Amazon's.
  Iam(Loop& loop, net::CredentialChain& keys, std::string region, const Value& endpoints);

  // Asks the region's STS, which everybody may; and IAM for the age of a key that lasts.
  Async<Identity> identity(CancelToken token);
  Async<std::string> account(CancelToken token);  // by STS alone
  std::int64_t skew_us() const { return sts_.skew_us(); }
  Async<std::vector<Quota>> quotas(CancelToken token);  // of GPU machines

 private:
  Async<Value> caller(CancelToken token);
  Async<Value::Array> keys_of_user(CancelToken token);

  net::CredentialChain& keys_;
  std::string sts_url_, iam_url_, quotas_url_;
  net::Api sts_, iam_, quotas_;
};

// The least that the keys must be allowed.
std::string policy();

}  // namespace rille::provider::aws
