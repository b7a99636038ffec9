#include "runtime/workflow/provider/owner.hpp"

namespace rille::provider {

namespace {
std::string kind_of(const std::string& owner) { return owner.substr(0, owner.find(' ')); }
}  // namespace

Async<std::string> owner_of(Provider* provider, std::string region, CancelToken token) {
  Owned* const owned = dynamic_cast<Owned*>(provider);
  if (!owned) co_return std::string();
  co_return co_await owned->owner(std::move(region), std::move(token));
}

bool is_other_owner(const std::string& one, const std::string& another) {
  return !one.empty() && !another.empty() && one != another && kind_of(one) == kind_of(another);
}

bool is_key_mark(const std::string& owner) { return kind_of(owner) == "key"; }

}  // namespace rille::provider
