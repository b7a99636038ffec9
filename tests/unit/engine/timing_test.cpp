#include "runtime/workflow/engine/timing.hpp"

#include <catch2/catch.hpp>

#include "runtime/core/base/time.hpp"

using namespace rille;
using namespace rille::engine;

namespace {

constexpr std::int64_t second_us = 1'000'000;
// 2026-11-21T13:00:30.5Z, a Saturday
constexpr std::int64_t now_us = 1'795'266'030 * second_us + 500'000;

std::string next(const char* text, std::int64_t after_us = now_us, std::int64_t begin_us = now_us) {
  Result<Timing> t = Timing::parse(text);
  if (!t) return t.error().message;
  return format_utc(t->next_us(after_us, begin_us));
}

}  // namespace

TEST_CASE("an interval is counted from the beginning, in whole seconds") {
  CHECK(format_utc(now_us) == "2026-11-21T13:00:30Z");
  CHECK(next("every 6h") == "2026-11-21T19:00:30Z");
  CHECK(next("90m") == "2026-11-21T14:30:30Z");
  CHECK(next("1s") == "2026-11-21T13:00:31Z");
  CHECK(next("every 1h", now_us + 3'600 * second_us - 500'001) == "2026-11-21T14:00:30Z");
  CHECK(next("every 1h", now_us + 3'600 * second_us - 500'000) == "2026-11-21T15:00:30Z");
  CHECK(next("every 1h", now_us - 86'400 * second_us) == "2026-11-21T14:00:30Z");
  CHECK(next("100ms") == "'100ms' is less than a second");
}

TEST_CASE("a cron line is due in the minutes that it says, in UTC") {
  CHECK(next("* * * * *") == "2026-11-21T13:01:00Z");
  CHECK(next("0 3 * * *") == "2026-11-22T03:00:00Z");
  CHECK(next("*/20 * * * *") == "2026-11-21T13:20:00Z");
  CHECK(next("0-10/5,50 14 * * *") == "2026-11-21T14:00:00Z");
  CHECK(next("10/25 * * * *") == "2026-11-21T13:10:00Z");
  CHECK(next("30 9 * * 1-5") == "2026-11-23T09:30:00Z");
  CHECK(next("30 9 * * mon-fri") == "2026-11-23T09:30:00Z");
  CHECK(next("0 0 * * 7") == "2026-11-22T00:00:00Z");
  CHECK(next("0 0 * * sun") == "2026-11-22T00:00:00Z");
  CHECK(next("0 0 1 jan *") == "2027-01-01T00:00:00Z");
  CHECK(next("0 0 29 2 *") == "2028-02-29T00:00:00Z");
  CHECK(next("0 0 31 * *") == "2026-12-31T00:00:00Z");
  CHECK(next("0 12 24 * mon") == "2026-11-23T12:00:00Z");   // either day
  CHECK(next("0 12 */2 * mon") == "2026-11-23T12:00:00Z");  // both: one begins with *
  CHECK(next("0 13 * * *", 1'795'266'000 * second_us - 1) == "2026-11-21T13:00:00Z");
  CHECK(next("0 13 * * *", 1'795'266'000 * second_us) == "2026-11-22T13:00:00Z");
}

TEST_CASE("a text that is not a timing is refused") {
  CHECK(next("soon") == "'soon' is not a time plan");
  CHECK(next("") == "'' is not a time plan");
  CHECK(next("1 2 3 4") == "'1 2 3 4' is not a time plan");
  CHECK(next("60 * * * *") == "'60' is not a valid minute");
  CHECK(next("* * 0 * *") == "'0' is not a valid day of the month");
  CHECK(next("* * * foo *") == "'foo' is not a valid month");
  CHECK(next("*/0 * * * *") == "'0' is not a valid step for the minute");
  CHECK(next("9-5 * * * *") == "the minute '9-5' ends before it begins");
  CHECK(next("1,,2 * * * *") == "'' is not a valid minute");
  CHECK(next("0 0 30 2 *") == "'0 0 30 2 *' is never due: that month has no such day");
}
