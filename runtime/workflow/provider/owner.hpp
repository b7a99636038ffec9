// Owner: whose the machines are that a provider rents. Providers that know, or can ask, are Owned as well; others (the
// machine at hand, a simulation) have nobody else to be taken for.
#pragma once

#include <string>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

class Owned {
 public:
  virtual ~Owned() = default;
  // What keys may be replaced within: "account 123456789012", "project my-lab", "cluster lab". Where the API tells
  // nothing of the kind, "key 3fa1b2c4d5e6", a mark of the key itself. Never a secret. `region`: of its own, or "".
  // Asks at most once per key.
  virtual Async<std::string> owner(std::string region, CancelToken token) = 0;
};

// As Owned; "": it is none, or does not say.
Async<std::string> owner_of(Provider* provider, std::string region, CancelToken token);
// The first word is what it names. Two that name different things cannot be told apart.
bool is_other_owner(const std::string& one, const std::string& another);
bool is_key_mark(const std::string& owner);

}  // namespace rille::provider
