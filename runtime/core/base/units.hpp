// Sizes and money. Money is integer micro-dollars; a double never enters the ledger.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille {

// "80GB", "1.5 MiB", "4096" -> bytes. GB is 10^9, GiB is 2^30. invalid: says what is accepted.
Result<std::int64_t> parse_size_bytes(std::string_view text);
std::string format_size_bytes(std::int64_t bytes);  // "1.2 MB"

using Micros = std::int64_t;                         // micro-dollars
Result<Micros> micros_from_dollars(double dollars);  // exact to the nearest micro; invalid for nan, inf, |x| > 9e12
std::string format_dollars(Micros micros);           // "$1.50", "$0.0312"; up to six decimals, at least two
std::string format_money(Micros micros, std::string_view currency);  // the same for "USD"; else "14.10 CNY"
// Cost of `ms` milliseconds at a price per hour, rounded up to the next micro-dollar.
Micros cost_micros(Micros price_micros_per_hour, std::int64_t ms);

// The candidate nearest to `word` (Damerau-Levenshtein, at most a third of its length), or "" when no candidate is
// near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace rille
