// What providers have to rent, asked of several at once; and how long each is waited for, so that one that hangs does
// not hold up what the others have. Loop thread only.
#pragma once

#include "runtime/workflow/lease/queries.hpp"

namespace rille::lease {

struct Patience {
  std::int64_t timeout_ms = 0;    // of each; 0: 30 s, and 10 s or a little more once others have offers
  bool named = true;              // whether the query's providers are those that the user insists on: 30 s
  bool others_have_some = false;  // offers that fit, of somebody who is not asked again
};

// As ProviderQueries::ask, which asks so with a Patience that says nothing.
Async<std::vector<ProviderQueries::Asked>> ask_providers(Loop& loop, provider::Registry& registry,
                                                         provider::OfferQuery query, Patience patience,
                                                         CancelToken token);

// `timeout` of a question for offers, which is taken out of it; 0: it says none. invalid: it is no time.
Result<std::int64_t> take_timeout(Value& query);

}  // namespace rille::lease
