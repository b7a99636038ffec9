// What to change where no offer matches a query, in the words of the place that asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

enum class Asker : std::uint8_t { offers, rent, command };  // rille.offers, rille.rent, the command line

// Without all that a hint can be about: anywhere, at any price, of any size. Nothing: it asks for none of that.
std::optional<OfferQuery> loosened(OfferQuery query);
// `others`: what the loosened query finds. The GPU that was meant; else what is in the way, and how near there is
// something: "did you mean region = \"eu-west-1\"?", "the cheapest that fits is .. at $2.00 an hour: raise max_price".
// "": it knows no better.
std::string nearest_hint(const OfferQuery& query, const std::vector<Offer>& others, Asker asker);
// The first part of it alone: "did you mean gpu = \"A100\"?".
std::string gpu_hint(const OfferQuery& query, Asker asker);

}  // namespace rille::provider
