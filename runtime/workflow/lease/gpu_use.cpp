// Refuses a GPU that this build cannot use, before a rent or a resize pays for it: a call on that machine would fail,
// or compute on the CPU at the price of a GPU machine.
#include "runtime/workflow/lease/gpu_use.hpp"

#include <fmt/format.h>

#include "runtime/workflow/lease/queries.hpp"
#include "runtime/workflow/lease/terms.hpp"

namespace rille::lease {

std::optional<Error> ProviderQueries::gpu_unusable(const Terms& terms, const provider::Offer& offer) const {
  if (!gpu_use_ || !terms.cuda || offer.gpu_count <= 0 || offer.gpu.empty()) return std::nullopt;
  const Result<provider::Provider*> found = registry_.find(offer.provider);
  const bool owned = found && (*found)->traits().owned;
  std::optional<Error> why = gpu_use_({offer.gpu, offer.gpu_vendor, offer.gpu_memory_bytes, owned});
  if (why) why->provider = offer.provider;
  return why;
}

std::optional<Error> ProviderQueries::gpu_unusable(const Value& options, const provider::Offer& offer) const {
  const Result<Terms> terms = terms_of(options);
  return terms ? gpu_unusable(*terms, offer) : std::nullopt;
}

// Fails if this build can use none of the GPUs that the rent names. Asks only the user's own machines, no provider that
// bills.
Async<> ProviderQueries::check_named_gpus(Wish wish, CancelToken token) {
  const provider::OfferQuery& query = wish->query;
  std::vector<std::string> named;
  for (const provider::GpuWish& g : query.gpus) named.push_back(g.model);
  if (query.gpu != "any" && query.gpu != "cpu") named.push_back(query.gpu);
  if (!gpu_use_ || !wish->cuda || named.empty()) co_return success();
  std::optional<Error> why;
  for (const std::string& model : named) {
    why = gpu_use_({model, query.gpu_vendor, query.gpu_memory_bytes, false});
    if (!why) co_return success();
  }
  provider::OfferQuery own = query;
  own.providers.clear();
  for (provider::Provider* p : registry_.all())
    if (query.accepts_provider(p->name()) && p->traits().owned) own.providers.push_back(p->name());
  if (!own.providers.empty()) {
    RILLE_CO_TRY(const std::vector<Asked> answers, co_await ask(std::move(own), std::move(token)));
    for (const Asked& asked : answers)
      if (asked.offers && !asked.offers->empty()) co_return success();
  }
  co_return std::move(*why);
}

}  // namespace rille::lease
