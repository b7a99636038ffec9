// ProviderQueries: what is asked of all providers at once: offers, price histories, quotas. A lease::Manager has one,
// and rents what it finds. Also how this home reads the options of a rent: its rates, its disk prices, and which GPUs
// this build can use. Loop thread only.
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
  // `registry` outlives this.
  ProviderQueries(Loop& loop, provider::Registry& registry) : loop_(loop), registry_(registry) {}

  // Offers of all providers, or of those named in the query, best first by its rank. A failing provider is an entry
  // with an error, not a failure, and so is a region that fails; what was left out is an entry with a note.
  Async<Value> offers(Value query, CancelToken token);
  // What to change in a query that found none; "": nothing is known to help. It may ask the providers.
  Async<std::string> offers_hint(Value query, CancelToken token);
  // What spot machines have cost: a list with an object per provider and type, as provider::TypeHistory says it. The
  // query: gpu count vcpus memory region provider(s), and `since`, "7d". Providers without a history are left out, but
  // for those that are named; a failing one is an entry with an error.
  Async<Value> price_history(Value query, CancelToken token);
  // What the accounts may rent: a list with an object per quota, as provider::Quota says it, and `provider`. The query:
  // provider(s), region. Providers that tell none are left out, but for those that are named; a failing one is an entry
  // with an error.
  Async<Value> quotas(Value query, CancelToken token);
  // What each of those providers that the query accepts says, at once; whole: see catalogue/known.hpp. invalid: names a
  // provider that is not there.
  struct Asked {
    std::string provider;
    Result<std::vector<provider::Offer>> offers;
    provider::LeftOut left_out;
  };
  Async<std::vector<Asked>> ask(provider::OfferQuery query, CancelToken token);
  // What this build can use; before the first rent. Null, as in tests and simulations: nothing is refused.
  void set_gpu_use(GpuUse use) { gpu_use_ = std::move(use); }
  // Why a rent with these options would refuse the offer's GPU.
  std::optional<Error> gpu_unusable(const Value& options, const provider::Offer& offer) const;
  // What currencies are worth where a query does not say it.
  void set_rates(provider::Rates rates) {
    rates_ = std::move(rates);
    last_ = nullptr;  // was read with others
  }
  void set_disk_prices(provider::DiskPrices prices) { disk_prices_ = std::move(prices); }
  // The options of a rent, or of another `asker`, with this home's rates and disk prices.
  Result<Terms> terms_of(const Value& options, const char* asker = "rent") const;
  Result<Wish> wish_of(const Value& options);  // the same; the one that was read last is kept
  std::optional<Error> gpu_unusable(const Terms& terms, const std::string& provider, GpuAsked asked) const;
  // Fails if this build can use none of the GPUs that the options name, and the user owns no machine that fits.
  Async<> check_named_gpus(Wish wish, CancelToken token);
  // What there would be if less were asked for.
  Task<std::vector<provider::Offer>> elsewhere(provider::OfferQuery query, CancelToken token);

 private:
  Loop& loop_;
  provider::Registry& registry_;
  provider::Rates rates_;
  provider::DiskPrices disk_prices_;
  GpuUse gpu_use_;
  Wish last_;  // many rents have the same options; null: none was read
  std::string last_options_;
};

}  // namespace rille::lease
