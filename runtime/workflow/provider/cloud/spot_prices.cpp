#include "runtime/workflow/provider/cloud/spot_prices.hpp"

#include <algorithm>

namespace rille::provider::cloud {

namespace {
constexpr std::int64_t failure_lasts_us = 60'000'000;
constexpr std::size_t points_max = 10'000;
}  // namespace

// Adds `told` to the known points. A point with from_wall_us 0 is the current price, added only if the price has
// changed.
void SpotPrices::learn(Known& known, std::vector<PricePoint> told, std::int64_t now_us) {
  const bool is_seen = std::any_of(told.begin(), told.end(), [](const PricePoint& p) { return p.from_wall_us == 0; });
  if (!is_seen) {
    std::stable_sort(told.begin(), told.end(),
                     [](const PricePoint& a, const PricePoint& b) { return a.from_wall_us < b.from_wall_us; });
    known.points = std::move(told);
  }
  for (PricePoint& point : is_seen ? told : std::vector<PricePoint>()) {
    if (!known.points.empty() && known.points.back().micros_per_hour == point.micros_per_hour) continue;
    point.from_wall_us = now_us;
    known.points.push_back(std::move(point));
  }
  if (known.points.size() > points_max)
    known.points.erase(known.points.begin(), known.points.end() - static_cast<std::ptrdiff_t>(points_max));
}

Async<std::vector<PricePoint>> SpotPrices::get(std::string key, std::int64_t since_us, std::int64_t lasts_us, Ask ask,
                                               CancelToken token) {
  Known& known = known_[key];
  while (known.asking) {
    Future<bool> over(loop_);
    known.waiting.push_back(over);
    const auto registration = token.on_cancel([over](const Error&) { over.set(true); });
    co_await over;
    if (token.cancelled()) co_return token.reason();
  }
  const std::int64_t now_us = loop_.clock().wall_us();
  if (now_us < known.until_us && known.since_us <= since_us) co_return known.points;
  const bool is_first = known.until_us == 0;
  const std::int64_t back_us = is_first ? since_us : std::min(since_us, known.since_us);
  known.asking = true;
  Result<std::vector<PricePoint>> told = co_await ask(back_us, token);
  known.asking = false;
  for (const Future<bool>& waiter : std::exchange(known.waiting, {})) waiter.set(true);
  // only this caller was cancelled; the next caller asks again
  if (!told && token.cancelled()) co_return token.reason();
  known.until_us = now_us + (told ? lasts_us : std::min(lasts_us, failure_lasts_us));
  known.since_us = back_us;
  if (told) learn(known, std::move(*told), now_us);
  else if (known.points.empty()) co_return told.error();
  co_return known.points;
}

}  // namespace rille::provider::cloud
