// What spot machines have cost, as people compare it.
#include "runtime/workflow/provider/price_history.hpp"

#include <catch2/catch.hpp>

using namespace rille;
using namespace rille::provider;

namespace {

constexpr std::int64_t hour = 3'600'000'000, now = 1'800'000'000'000'000, since = now - 24 * hour;

PricePoint point(const char* type, const char* zone, std::int64_t hours_ago, double dollars) {
  PricePoint p;
  p.type = type;
  p.zone = zone;
  p.from_wall_us = now - hours_ago * hour;
  p.micros_per_hour = static_cast<Micros>(dollars * 1e6);
  return p;
}

}  // namespace

TEST_CASE("a price counts for as long as it stood, and the one before the time for its rest") {
  // 30 hours ago, so from the beginning: 1.00 for 20 hours, 5.00 for 1, 2.00 for 3.
  const auto all =
      summarize("aws", {point("big", "a", 3, 2), point("big", "a", 30, 1), point("big", "a", 4, 5)}, since, now);
  REQUIRE(all.size() == 1);
  const TypeHistory& h = all[0];
  CHECK(h.provider == "aws");
  CHECK(h.points == 3);
  CHECK(h.zones == 1);
  CHECK(h.lowest == 1'000'000);
  CHECK(h.median == 1'000'000);
  CHECK(h.highest == 5'000'000);
  CHECK(h.now == 2'000'000);
  CHECK(h.from_us == since);
  REQUIRE(h.samples.size() == 24);
  CHECK(h.samples.front() == 1'000'000);
  CHECK(h.samples[20] == 2'000'000);
  CHECK(h.samples[19] == 5'000'000);
  CHECK(h.samples.back() == 2'000'000);
}

TEST_CASE("of several zones the cheapest counts now; the cheapest type comes first; what is over is left out") {
  const auto all = summarize(
      "aws", {point("dear", "a", 20, 9), point("big", "a", 20, 3), point("big", "b", 10, 2), point("dear", "a", -1, 1)},
      since, now);
  REQUIRE(all.size() == 2);
  CHECK(all[0].type == "big");
  CHECK(all[0].zones == 2);
  CHECK(all[0].now == 2'000'000);
  CHECK(all[0].median == 3'000'000);
  CHECK(all[0].from_us == now - 20 * hour);
  CHECK(all[0].samples.front() == -1);
  CHECK(all[0].to_value()["samples"].as_array()->size() == 21);
  CHECK(all[1].now == 9'000'000);  // what is to come is not now
  CHECK(summarize("aws", {}, since, now).empty());
}

TEST_CASE("a sparkline goes from the lowest to the highest") {
  CHECK(sparkline({1, 8}) == "▁█");
  CHECK(sparkline({-1, 5, 5}) == " ▁▁");
  CHECK(sparkline({0, 7, 3}) == "▁█▄");
  CHECK(sparkline({}).empty());
}
