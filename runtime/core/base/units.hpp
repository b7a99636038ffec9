// Reads and formats sizes and money.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/base/money.hpp"
#include "runtime/core/base/result.hpp"

namespace rille {

// Converts "80GB", "1.5 MiB" or "4096" to bytes. GB is 10^9, GiB is 2^30. Error `invalid`: says what is accepted.
Result<std::int64_t> parse_size_bytes(std::string_view text);
std::string format_size_bytes(std::int64_t bytes);  // such as "1.2 MB"

// rounded to the nearest micro-dollar; error `invalid` for nan, inf, |x| > 9e12
Result<Micros> micros_from_dollars(double dollars);
std::string format_dollars(Micros micros);  // such as "$1.50", "$0.0312"; two to six decimals
// format_dollars for "USD"; otherwise such as "14.10 CNY"
std::string format_money(Micros micros, std::string_view currency);
// Cost of `ms` milliseconds at a price per hour, rounded up to the next micro-dollar.
Micros cost_micros(Micros price_micros_per_hour, std::int64_t ms);

}  // namespace rille
