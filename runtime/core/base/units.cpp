#include "runtime/core/base/units.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

namespace rille {

Result<std::int64_t> parse_size_bytes(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr Unit units[] = {{"", 1},
                                   {"b", 1},
                                   {"k", 1e3},
                                   {"kb", 1e3},
                                   {"m", 1e6},
                                   {"mb", 1e6},
                                   {"g", 1e9},
                                   {"gb", 1e9},
                                   {"t", 1e12},
                                   {"tb", 1e12},
                                   {"kib", 1024.},
                                   {"mib", 1048576.},
                                   {"gib", 1073741824.},
                                   {"tib", 1099511627776.}};
  Error bad = make_error(ErrorKind::invalid, fmt::format("'{}' is not a size", text),
                         "write a number and a unit: 512MB, 80GB or 64GiB");
  double number = 0;
  const char* end = text.data() + text.size();
  auto [rest, ec] = std::from_chars(text.data(), end, number);
  if (ec != std::errc{} || !std::isfinite(number) || number < 0) return bad;
  std::string unit;
  for (; rest != end; ++rest)
    if (*rest != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*rest)));
  for (const Unit& u : units)
    if (u.name == unit && number * u.bytes < 9e18) return static_cast<std::int64_t>(std::llround(number * u.bytes));
  return bad;
}

std::string format_size_bytes(std::int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double n = static_cast<double>(bytes);
  for (const char* unit : {"kB", "MB", "GB", "TB"}) {
    n /= 1000;
    if (n < 999.95) return fmt::format("{:.1f} {}", n, unit);
  }
  return fmt::format("{:.1f} PB", n / 1000);
}

Result<Micros> micros_from_dollars(double dollars) {
  if (!std::isfinite(dollars) || std::fabs(dollars) > 9e12)
    return make_error(ErrorKind::invalid, fmt::format("{} is not an amount of dollars", dollars),
                      "write a number of at most 9e12, such as 200 or 0.5");
  return static_cast<Micros>(std::llround(dollars * 1e6));
}

std::string format_dollars(Micros micros) {
  Micros magnitude = micros < 0 ? -micros : micros;
  std::string fraction = fmt::format("{:06}", magnitude % 1'000'000);
  while (fraction.size() > 2 && fraction.back() == '0') fraction.pop_back();
  return fmt::format("{}${}.{}", micros < 0 ? "-" : "", magnitude / 1'000'000, fraction);
}

std::string format_money(Micros micros, std::string_view currency) {
  const std::string dollars = format_dollars(micros);
  return currency == "USD"
             ? dollars
             : fmt::format("{}{} {}", micros < 0 ? "-" : "", dollars.substr(micros < 0 ? 2 : 1), currency);
}

Micros cost_micros(Micros price_micros_per_hour, std::int64_t ms) {
  __int128 product = static_cast<__int128>(price_micros_per_hour) * ms;
  return static_cast<Micros>((product + 3'599'999) / 3'600'000);
}

}  // namespace rille
