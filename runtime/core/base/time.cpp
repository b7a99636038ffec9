#include "runtime/core/base/time.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace rille {

namespace {

class SystemClock final : public Clock {
 public:
  std::int64_t wall_us() const override { return read(CLOCK_REALTIME) / 1000; }
  std::int64_t monotonic_ns() const override { return read(CLOCK_MONOTONIC); }

 private:
  static std::int64_t read(clockid_t id) {
    timespec t{};
    clock_gettime(id, &t);
    return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
  }
};

struct Unit {
  std::string_view name;
  double ms;
};
constexpr Unit units[] = {{"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"min", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}, {"", 1e3}};

Error bad_duration(std::string_view text) {
  return make_error(ErrorKind::invalid, fmt::format("'{}' is not a duration", text),
                    "write a number and a unit: 250ms, 30s, 5m, 6h or 2d");
}

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

Result<std::int64_t> parse_duration_ms(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  auto [rest, ec] = std::from_chars(text.data(), end, number);
  if (ec != std::errc{} || !std::isfinite(number) || number < 0) return bad_duration(text);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& u : units)
    if (u.name == unit) {
      double ms = std::round(number * u.ms);
      if (ms > 9e15) return bad_duration(text);
      return static_cast<std::int64_t>(ms);
    }
  return bad_duration(text);
}

std::string format_duration_ms(std::int64_t ms) {
  if (ms < 0) return "-" + format_duration_ms(-ms);
  if (ms < 1000) return fmt::format("{}ms", ms);
  if (ms < 10'000) return fmt::format("{:.1f}s", static_cast<double>(ms) / 1000);
  std::int64_t s = ms / 1000;
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return s % 60 ? fmt::format("{}m{}s", s / 60, s % 60) : fmt::format("{}m", s / 60);
  std::int64_t m = s / 60;
  if (m < 48 * 60) return m % 60 ? fmt::format("{}h{}m", m / 60, m % 60) : fmt::format("{}h", m / 60);
  std::int64_t h = m / 60;
  return h % 24 ? fmt::format("{}d{}h", h / 24, h % 24) : fmt::format("{}d", h / 24);
}

std::string format_utc(std::int64_t wall_us) {
  constexpr time_t day_s = 86'400;
  struct Day {
    time_t number = std::numeric_limits<time_t>::min();
    char text[21] = "0000-00-00T00:00:00Z";
  };
  // Caches dates, because gmtime_r takes as long as all other work on an event's text. Most instants fall on a recent
  // day, or on the next day when a lease ends.
  thread_local Day days[4];
  const time_t seconds = wall_us / 1'000'000, number = seconds / day_s - (seconds % day_s < 0 ? 1 : 0);
  // Writes digits by hand: fmt::format of six numbers takes 4,000 instructions, and each event has several instants.
  const auto put = [](char* end, int n) {
    for (; n > 0; n /= 10) *--end = static_cast<char>('0' + n % 10);
  };
  Day& day = days[number & 3];
  if (day.number != number) {
    tm parts{};
    const time_t begin = number * day_s;
    gmtime_r(&begin, &parts);
    std::memcpy(day.text, "0000-00-00", 10);
    put(day.text + 4, std::clamp(parts.tm_year + 1900, 0, 9999));
    put(day.text + 7, parts.tm_mon + 1);
    put(day.text + 10, parts.tm_mday);
    day.number = number;
  }
  std::string out(day.text, sizeof day.text - 1);
  const int in_day = static_cast<int>(seconds - number * day_s);
  put(out.data() + 13, in_day / 3600);
  put(out.data() + 16, in_day / 60 % 60);
  put(out.data() + 19, in_day % 60);
  return out;
}

Result<std::int64_t> parse_utc(std::string_view text) {
  tm parts{};
  int used = 0;
  const std::string copy(text);
  const auto wrong = [&] {
    return make_error(ErrorKind::invalid, fmt::format("'{}' is not a time in UTC", text),
                      "write it as 2026-11-21T02:03:04Z");
  };
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &used) != 6)
    return wrong();
  std::string_view rest = text.substr(static_cast<std::size_t>(used));
  std::int64_t micros = 0;
  if (rest.starts_with('.')) {
    std::int64_t unit = 100'000;
    for (rest.remove_prefix(1); !rest.empty() && rest[0] >= '0' && rest[0] <= '9'; rest.remove_prefix(1), unit /= 10)
      micros += unit * (rest[0] - '0');
  }
  if (rest != "Z" && rest != "+00:00") return wrong();
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<std::int64_t>(timegm(&parts)) * 1'000'000 + micros;
}

}  // namespace rille
