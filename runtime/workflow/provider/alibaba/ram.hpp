// The identity of the access keys at Alibaba Cloud, from STS and RAM. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/account.hpp"

namespace rille::provider::alibaba {

class Ram {
 public:
  // `endpoints`: overrides of "sts" and "ram", for tests.
  Ram(Loop& loop, net::CredentialChain& keys, const Value& endpoints);

  // Asks STS, which needs no permission, and RAM for the age of a permanent key.
  Async<Identity> identity(CancelToken token);
  Async<std::string> account(CancelToken token);  // the account's id, from STS
  std::int64_t skew_us() const { return sts_.skew_us(); }

 private:
  Async<Value> caller(CancelToken token);
  Async<Value::Array> keys_of_user(CancelToken token);

  net::CredentialChain& keys_;
  std::string sts_url_, ram_url_;
  net::Api sts_, ram_;
};

// The minimal RAM policy that Rille's keys need, as JSON.
std::string policy();

}  // namespace rille::provider::alibaba
