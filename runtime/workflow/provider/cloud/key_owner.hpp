// KeyOwner: the name of the account that a key belongs to, requested once per key. Loop thread only.
#pragma once

#include <functional>
#include <string>

#include "runtime/core/net/credentials/chain.hpp"

namespace rille::provider::cloud {

// A one-way digest of a key.
std::string mark_of(const std::string& provider, const net::Credentials& keys);

class KeyOwner {
 public:
  using Ask = std::function<Async<std::string>(CancelToken)>;

  KeyOwner(std::string provider, std::string kind) : provider_(std::move(provider)), kind_(std::move(kind)) {}

  // "account 123456789012". `ask` returns the name without the kind. integrity: an empty name.
  Async<std::string> get(net::CredentialChain* keys, Ask ask, CancelToken token);

 private:
  std::string provider_, kind_, mark_, owner_;
};

}  // namespace rille::provider::cloud
