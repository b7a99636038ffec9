// ProviderQueries: queries to all providers at once: offers, price histories, quotas. A lease::Manager has one and
// rents from the offers. Also interprets rent options with this home's rates, disk prices, and usable GPUs. Loop thread
// only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/lease/gpu_use.hpp"
#include "runtime/workflow/provider/provider.hpp"

namespace rille::lease {

struct Terms;

class ProviderQueries {
 public:
  using Wish = std::shared_ptr<const Terms>;
  // `registry` must outlive this object.
  ProviderQueries(Loop& loop, provider::Registry& registry) : loop_(loop), registry_(registry) {}

  // Offers of all providers, or of those named in the query, best first by its rank. A failing provider or region is an
  // entry with an error, not a failure; offers left out are an entry with a note.
  Async<Value> offers(Value query, CancelToken token);
  // How to change a query that found nothing; "": no suggestion. May ask the providers.
  Async<std::string> offers_hint(Value query, CancelToken token);
  // Past prices of spot machines: a list with an object per provider and type (provider::TypeHistory). The query: gpu
  // count vcpus memory region provider(s), and `since`, "7d". Providers without a history are omitted unless named; a
  // failing provider is an entry with an error.
  Async<Value> price_history(Value query, CancelToken token);
  // The quotas of the accounts: a list with an object per quota (provider::Quota) plus `provider`. The query:
  // provider(s), region. Providers without quotas are omitted unless named; a failing provider is an entry with an
  // error.
  Async<Value> quotas(Value query, CancelToken token);
  // Asks all providers that the query accepts for their offers, concurrently. invalid: the query names an unknown
  // provider.
  struct Asked {
    std::string provider;
    Result<std::vector<provider::Offer>> offers;
    provider::LeftOut left_out;
  };
  Async<std::vector<Asked>> ask(provider::OfferQuery query, CancelToken token);
  // Sets the function that knows which GPUs this build can use; call before the first rent. Null, as in tests and
  // simulations: no GPU is refused.
  void set_gpu_use(GpuUse use) { gpu_use_ = std::move(use); }
  // Why a rent with these options, or a resize to this offer, refuses the offer's GPU; nullopt: it does not.
  std::optional<Error> gpu_unusable(const Value& options, const provider::Offer& offer) const;
  std::optional<Error> gpu_unusable(const Terms& terms, const provider::Offer& offer) const;
  // Sets the exchange rates for queries that give no rates.
  void set_rates(provider::Rates rates) {
    rates_ = std::move(rates);
    last_ = nullptr;  // drop the cached terms, which were read with the old rates
  }
  void set_disk_prices(provider::DiskPrices prices) { disk_prices_ = std::move(prices); }
  // Parses the options of a rent, or of another `asker`, with this home's rates and disk prices.
  Result<Terms> terms_of(const Value& options, const char* asker = "rent") const;
  Result<Wish> wish_of(const Value& options);  // terms_of for a rent; caches the last result
  // Fails if this build can use none of the GPUs that the options name, and the user owns no machine that fits.
  Async<> check_named_gpus(Wish wish, CancelToken token);
  // Offers for a loosened query, for hints.
  Task<std::vector<provider::Offer>> elsewhere(provider::OfferQuery query, CancelToken token);

 private:
  Loop& loop_;
  provider::Registry& registry_;
  provider::Rates rates_;
  provider::DiskPrices disk_prices_;
  GpuUse gpu_use_;
  Wish last_;  // cached terms of last_options_, because many rents have equal options; null: nothing is cached
  std::string last_options_;
};

}  // namespace rille::lease
