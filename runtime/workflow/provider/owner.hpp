// Owned: a provider that can name the account its machines belong to. Others (the local machine, a simulation) have
// only one owner.
#pragma once

#include <string>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

class Owned {
 public:
  virtual ~Owned() = default;
  // The owner, within which keys may be rotated: "account 123456789012", "project my-lab", "cluster lab". If the API
  // has no such name, "key 3fa1b2c4d5e6", a digest of the key. Never a secret. `region`: one of the provider's, or "".
  // At most one call per key.
  virtual Async<std::string> owner(std::string region, CancelToken token) = 0;
};

// Owned::owner; "": not Owned, or unknown.
Async<std::string> owner_of(Provider* provider, std::string region, CancelToken token);
// The first word is the kind. Owners of different kinds cannot be compared: false.
bool is_other_owner(const std::string& one, const std::string& another);
bool is_key_mark(const std::string& owner);

}  // namespace rille::provider
