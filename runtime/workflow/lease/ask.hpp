// Asks several providers for offers at once. Each provider has a time limit, so that one that hangs does not delay the
// offers of the others. Loop thread only.
#pragma once

#include "runtime/workflow/lease/queries.hpp"

namespace rille::lease {

struct Patience {
  // Time limit of each provider. 0: 30 s, shortened to 10 s or slightly more once another provider has offers.
  std::int64_t timeout_ms = 0;
  bool named = true;              // the user named the providers: each of them has the full 30 s
  bool others_have_some = false;  // a provider that is not asked again already has matching offers
};

// Does the work of ProviderQueries::ask, which passes a default Patience.
Async<std::vector<ProviderQueries::Asked>> ask_providers(Loop& loop, provider::Registry& registry,
                                                         provider::OfferQuery query, Patience patience,
                                                         CancelToken token);

// Removes the option `timeout` from an offers query and returns it in milliseconds; 0: it is not given. Fails with
// `invalid` if it is not a duration.
Result<std::int64_t> take_timeout(Value& query);

}  // namespace rille::lease
