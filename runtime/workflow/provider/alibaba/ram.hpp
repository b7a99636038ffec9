// The identity at Alibaba Cloud: STS and RAM as plain values. Loop thread only.
#pragma once

#include <string>

#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/account.hpp"

namespace rille::provider::alibaba {

class Ram {
 public:
  // `endpoints`: overrides of "sts" and "ram", for tests.
  Ram(Loop& loop, net::CredentialChain& keys, const Value& endpoints);

  // From STS, which needs no right; the age of a permanent key from RAM.
  Async<Identity> identity(CancelToken token);
  Async<std::string> account(CancelToken token);  // by STS alone
  std::int64_t skew_us() const { return sts_.skew_us(); }

 private:
  Async<Value> caller(CancelToken token);
  Async<Value::Array> keys_of_user(CancelToken token);

  net::CredentialChain& keys_;
  std::string sts_url_, ram_url_;
  net::Api sts_, ram_;
};

// The minimal policy that the keys need.
std::string policy();

}  // namespace rille::provider::alibaba
