// List prices: what providers publish on their public pages for the usual GPUs, read on a date, compiled in. They are
// shown where no live price is known, always as "list price of DATE". A list price is no Offer: nothing can be rented
// by it, and no budget, lease or ledger reads it (docs/design/decisions.md). Constant data and pure functions; any
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

// Ways of paying for a machine's hours. A reserved price is per hour of the whole term, used or not.
enum class PriceKind : std::uint8_t { on_demand, spot, reserved_1y, reserved_3y };
constexpr std::array<PriceKind, 4> price_kinds = {PriceKind::on_demand, PriceKind::spot, PriceKind::reserved_1y,
                                                  PriceKind::reserved_3y};
std::string_view to_string(PriceKind kind);  // "on_demand", "spot", ..

struct ListPrice {
  std::string_view provider, type;  // the type's name as an offer's id has it: "p5.48xlarge"
  std::string_view region;          // "": the same price in all regions
  std::string_view gpu;             // a name that gpu_facts() finds
  int gpu_count;
  PriceKind kind;
  double dollars;                 // per hour of the whole machine
  std::string_view date, source;  // when the price was published or read, "2026-10-10", and on which page
};

// All rows (list_price_rows.cpp), those of one machine adjacent.
std::span<const ListPrice> list_prices();

// A machine type in a region, with each price that the list has of it.
struct ListedMachine {
  std::array<const ListPrice*, price_kinds.size()> prices = {};  // by PriceKind; null: unknown. At least one is known

  const ListPrice& any() const;  // one of the prices, for what all of them share
  const ListPrice* price(PriceKind kind) const { return prices[static_cast<std::size_t>(kind)]; }
  Micros micros(PriceKind kind) const;  // price_unknown: the list has no such price
  std::string dates() const;            // "2026-10-10", or "2026-01-21 to 2026-10-10" if the prices differ in date
  // For people, with the names of Offer::view, and `list_price_of`, the dates; `list_prices` has date and source of
  // each price.
  Value view() const;
};

// The listed machines that satisfy the query, best first by its rank, with the spot price if query.spot is set, else
// the on-demand price; machines without that price are left out. The list knows no CPUs and no main memory, so a query
// for these matches nothing.
std::vector<ListedMachine> listed_machines(const OfferQuery& query);

// The list price of that very offer: its provider, type, region, and spot or on demand; null: the list has none. For a
// hint or a note, never as the offer's price.
const ListPrice* list_price_of(const Offer& offer);

// "list price of 2026-10-10"
std::string list_price_words(std::string_view dates);

}  // namespace rille::provider
