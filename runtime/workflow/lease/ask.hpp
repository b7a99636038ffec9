// Asks several providers for offers at once. Each provider has a time limit, so that one that hangs does not delay the
// offers of the others. Loop thread only.
#pragma once

#include "runtime/workflow/lease/queries.hpp"

namespace rille::lease {

struct Patience {
  std::int64_t timeout_ms = 0;    // time limit per provider; 0: 30 s, or about 10 s once another provider has offers
  bool named = true;              // the user chose the query's providers: each has the full 30 s
  bool others_have_some = false;  // a provider that is not asked again already has matching offers
};

// Does the work of ProviderQueries::ask, which passes a default Patience.
Async<std::vector<ProviderQueries::Asked>> ask_providers(Loop& loop, provider::Registry& registry,
                                                         provider::OfferQuery query, Patience patience,
                                                         CancelToken token);

// Removes `timeout` from an offers query and returns it; 0: not given. invalid: not a duration.
Result<std::int64_t> take_timeout(Value& query);

}  // namespace rille::lease
