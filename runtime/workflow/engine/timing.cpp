#include "runtime/workflow/engine/timing.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <vector>

#include "runtime/core/base/time.hpp"

namespace rille::engine {

namespace {

constexpr std::int64_t second_us = 1'000'000, minute_us = 60 * second_us, day_us = 1440 * minute_us;
constexpr std::int64_t days_ahead = 366 * 9;  // how far to search: 29 February may be eight years away

struct Field {
  const char* name;
  int low, high;
  std::vector<std::string_view> names;  // names[i] stands for the value low + i
};

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {"minute", 0, 59, {}},
      {"hour", 0, 23, {}},
      {"day of the month", 1, 31, {}},
      {"month", 1, 12, {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
      {"day of the week", 0, 7, {"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
  };
  return all;
}

Result<int> read_number(const Field& field, std::string_view text) {
  for (std::size_t i = 0; i < field.names.size(); ++i)
    if (field.names[i] == text) return field.low + static_cast<int>(i);
  int n = -1;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (ec == std::errc() && end == text.data() + text.size() && n >= field.low && n <= field.high) return n;
  return make_error(ErrorKind::invalid, fmt::format("'{}' is not a valid {}", text, field.name),
                    fmt::format("expected {} to {}", field.low, field.high));
}

// Reads one cron field: items separated by commas; an item is *, a value or a range, optionally followed by /step.
template <std::size_t N>
Result<> read_field(const Field& field, std::string_view text, std::bitset<N>& out) {
  while (true) {
    std::size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    int low = field.low, high = field.high, step = 1;
    std::size_t slash = item.find('/');
    if (slash != std::string_view::npos) {
      std::string_view by = item.substr(slash + 1);
      auto [end, ec] = std::from_chars(by.data(), by.data() + by.size(), step);
      if (ec != std::errc() || end != by.data() + by.size() || step < 1)
        return make_error(ErrorKind::invalid, fmt::format("'{}' is not a valid step for the {}", by, field.name),
                          "write a whole number of at least 1 after the slash, as in */15");
      item = item.substr(0, slash);
    }
    if (item != "*") {
      std::size_t dash = item.find('-');
      RILLE_TRY(low, read_number(field, item.substr(0, dash)));
      if (dash != std::string_view::npos) {
        RILLE_TRY(high, read_number(field, item.substr(dash + 1)));
      } else if (slash == std::string_view::npos) {
        high = low;
      }
      if (high < low)
        return make_error(ErrorKind::invalid, fmt::format("the {} '{}' ends before it begins", field.name, item),
                          "write the lower number first, as in 1-5");
    }
    for (int i = low; i <= high; i += step) out.set(static_cast<std::size_t>(i));
    if (comma == std::string_view::npos) return {};
    text = text.substr(comma + 1);
  }
}

std::vector<std::string_view> timing_words_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (true) {
    std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return out;
    std::size_t end = std::min(text.find_first_of(" \t", begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    text = text.substr(end);
  }
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

Result<Timing> Timing::parse(std::string_view text) {
  Timing t;
  std::vector<std::string_view> words = timing_words_of(text);
  if (!words.empty() && words[0] == "every") words.erase(words.begin());
  auto every_ms = words.size() == 1 ? parse_duration_ms(words[0]) : Result<std::int64_t>(-1);
  if (every_ms && *every_ms >= 0) {
    t.every_us_ = *every_ms * 1000 / second_us * second_us;
    if (t.every_us_ < second_us)
      return make_error(ErrorKind::invalid, fmt::format("'{}' is less than a second", text),
                        "write a longer time, as in `every 6h`");
    return t;
  }
  if (words.size() != fields().size())
    return make_error(ErrorKind::invalid, fmt::format("'{}' is not a time plan", text),
                      "write `every 6h`, or five fields: minute hour day month weekday, as in `0 3 * * 1-5` (UTC)");
  RILLE_CHECK(read_field(fields()[0], words[0], t.minutes_));
  RILLE_CHECK(read_field(fields()[1], words[1], t.hours_));
  RILLE_CHECK(read_field(fields()[2], words[2], t.days_));
  RILLE_CHECK(read_field(fields()[3], words[3], t.months_));
  RILLE_CHECK(read_field(fields()[4], words[4], t.weekdays_));
  if (t.weekdays_[7]) t.weekdays_.set(0);
  t.any_day_ = words[2].starts_with("*");
  t.any_weekday_ = words[4].starts_with("*");
  if (t.next_us(0, 0) == INT64_MAX)
    return make_error(ErrorKind::invalid, fmt::format("'{}' is never due: that month has no such day", text),
                      "choose another day or month");
  return t;
}

bool Timing::due_on(std::int64_t day) const {
  std::chrono::sys_days date{std::chrono::days(day)};
  std::chrono::year_month_day ymd(date);
  if (!months_[static_cast<unsigned>(ymd.month())]) return false;
  bool by_day = days_[static_cast<unsigned>(ymd.day())];
  bool by_weekday = weekdays_[std::chrono::weekday(date).c_encoding()];
  return any_day_ || any_weekday_ ? by_day && by_weekday : by_day || by_weekday;
}

std::int64_t Timing::next_us(std::int64_t after_us, std::int64_t begin_us) const {
  if (every_us_) {
    std::int64_t begin = floor_div(begin_us, second_us) * second_us;
    return begin + std::max<std::int64_t>(1, floor_div(after_us - begin, every_us_) + 1) * every_us_;
  }
  std::int64_t from = floor_div(after_us, minute_us) + 1;  // first minute to consider, since 1970
  std::int64_t first = floor_div(from, 1440);
  for (std::int64_t day = first; day < first + days_ahead; ++day) {
    if (!due_on(day)) continue;
    std::int64_t minute = day == first ? from - day * 1440 : 0;
    for (; minute < 1440; ++minute)
      if (hours_[static_cast<std::size_t>(minute / 60)] && minutes_[static_cast<std::size_t>(minute % 60)])
        return day * day_us + minute * minute_us;
  }
  return INT64_MAX;
}

}  // namespace rille::engine
