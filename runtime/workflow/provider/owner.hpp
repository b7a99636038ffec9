// Owned: a provider that can name the account its machines belong to. Providers without accounts (the local machine, a
// simulation) do not implement it.
#pragma once

#include <string>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

class Owned {
 public:
  virtual ~Owned() = default;
  // The account's name, which stays when keys are rotated: "account 123456789012", "project my-lab", "cluster lab". If
  // the API has no such name: "key 3fa1b2c4d5e6", a digest of the key. Never a secret. `region`: a region of the
  // provider, or "". Sends at most one request per key.
  virtual Async<std::string> owner(std::string region, CancelToken token) = 0;
};

// The result of Owned::owner; "": the provider is not Owned, or the owner is unknown.
Async<std::string> owner_of(Provider* provider, std::string region, CancelToken token);
// Whether the names mean different owners. The first word of a name is its kind ("account", "key"); names of different
// kinds cannot be compared: false.
bool is_other_owner(const std::string& one, const std::string& another);
bool is_key_mark(const std::string& owner);

}  // namespace rille::provider
