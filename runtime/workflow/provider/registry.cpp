#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/workflow/provider/provider.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

Async<Listing> Provider::list_in(std::string, std::string tag_prefix, CancelToken token) {
  Listing out;
  RILLE_CO_TRY(out.machines, co_await list(std::move(tag_prefix), std::move(token)));
  co_return out;
}

Async<std::vector<Bill>> Provider::bill(BillQuery, CancelToken) { co_return std::vector<Bill>(); }

Async<Identity> Provider::check(CancelToken) { co_return lacks(name(), "account: no permissions needed"); }

Async<std::vector<Quota>> Provider::quotas(std::string, CancelToken) { co_return lacks(name(), "quotas"); }

Async<Machine> Provider::resize(std::string, std::string, CancelToken) {
  co_return lacks(name(), "way to make a machine another type");
}

Async<std::vector<PricePoint>> Provider::price_history(OfferQuery, std::int64_t, CancelToken) {
  co_return lacks(name(), "price history");
}

Result<> Registry::add(std::unique_ptr<Provider> provider) {
  for (const auto& p : providers_)
    if (p->name() == provider->name())
      return make_error(ErrorKind::state, "there is already a provider named '" + provider->name() + "'",
                        "give one of the two another name");
  providers_.push_back(std::move(provider));
  return {};
}

Result<Provider*> Registry::find(std::string_view name) const {
  std::vector<std::string> names;
  std::string listed;
  for (const auto& p : providers_) {
    if (p->name() == name) return p.get();
    names.push_back(p->name());
    listed += (listed.empty() ? "" : ", ") + p->name();
  }
  std::string near = did_you_mean(name, names);
  if (const auto& known = provider_names(); std::find(known.begin(), known.end(), name) != known.end()) {
    Error e = make_error(ErrorKind::invalid, "the provider '" + std::string(name) + "' is not set up",
                         fmt::format("put {{\"{0}\": {{..}}}} into {1}/providers.json, see "
                                     "docs/manual/providers/{0}.md; there are: {2}",
                                     name, config_folder(), listed));
    e.code = "not_set_up";  // rille.estimate goes on with list prices
    e.resource = name;
    return e;
  }
  return make_error(ErrorKind::invalid, "there is no provider '" + std::string(name) + "'",
                    near.empty() ? "there are: " + listed : "did you mean '" + near + "'?");
}

std::vector<Provider*> Registry::all() const {
  std::vector<Provider*> out;
  for (const auto& p : providers_) out.push_back(p.get());
  return out;
}

}  // namespace rille::provider
