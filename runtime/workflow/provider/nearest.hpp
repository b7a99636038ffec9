// Hints for a query that no offer matches, in the syntax of the caller: Lua, or command-line options.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

enum class Asker : std::uint8_t { offers, rent, command };  // rille.offers, rille.rent, the command line

// The query without the conditions that a hint can be about: region, price, sizes. nullopt: the query has no such
// condition.
std::optional<OfferQuery> loosened(OfferQuery query);
// `others`: the offers of the loosened query. Suggests a GPU name, else names the condition that excludes the nearest
// offer: "did you mean region = \"eu-west-1\"?", "the cheapest that fits is .. at $2.00 an hour: raise max_price".
// "": no suggestion.
std::string nearest_hint(const OfferQuery& query, const std::vector<Offer>& others, Asker asker);
// Suggests only a GPU name: "did you mean gpu = \"A100\"?". "": no suggestion.
std::string gpu_hint(const OfferQuery& query, Asker asker);

}  // namespace rille::provider
