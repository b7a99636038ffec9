// The identity of the access keys and their account's quotas, from AWS's STS, IAM and Service Quotas. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/account.hpp"

namespace rille::provider::aws {

class Iam {
 public:
  // `endpoints`: overrides of "sts", "iam" and "servicequotas", for tests.
  Iam(Loop& loop, net::CredentialChain& keys, std::string region, const Value& endpoints);

  // Asks the region's STS, which needs no permission, and IAM for the age of a permanent key.
  Async<Identity> identity(CancelToken token);
  Async<std::string> account(CancelToken token);  // the account number, from STS
  std::int64_t skew_us() const { return sts_.skew_us(); }
  Async<std::vector<Quota>> quotas(CancelToken token);  // the quotas that limit GPU machines

 private:
  Async<Value> caller(CancelToken token);
  Async<Value::Array> keys_of_user(CancelToken token);

  net::CredentialChain& keys_;
  std::string sts_url_, iam_url_, quotas_url_;
  net::Api sts_, iam_, quotas_;
};

// The minimal IAM policy that Rille's keys need, as JSON.
std::string policy();

}  // namespace rille::provider::aws
