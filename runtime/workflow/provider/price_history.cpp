#include "runtime/workflow/provider/price_history.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/core/base/time.hpp"

namespace rille::provider {

namespace {

constexpr int samples_count = 24;
constexpr Micros not_known = -1;

// the prices of one zone: (start time, price), sorted by time
using Line = std::vector<std::pair<std::int64_t, Micros>>;

Micros at(const Line& line, std::int64_t us) {
  const auto after =
      std::upper_bound(line.begin(), line.end(), us, [](std::int64_t t, const auto& p) { return t < p.first; });
  return after == line.begin() ? not_known : std::prev(after)->second;
}

Micros cheapest(const std::map<std::string, Line>& zones, std::int64_t us) {
  Micros out = not_known;
  for (const auto& [zone, line] : zones)
    if (const Micros price = at(line, us); price >= 0 && (out < 0 || price < out)) out = price;
  return out;
}

TypeHistory summed(const std::map<std::string, Line>& zones, std::int64_t since_us, std::int64_t now_us) {
  TypeHistory out;
  out.zones = static_cast<int>(zones.size());
  out.from_us = now_us;
  std::vector<std::pair<Micros, std::int64_t>> stood;  // (price, duration)
  std::int64_t whole_us = 0;
  for (const auto& [zone, line] : zones)
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::int64_t from = std::max(line[i].first, since_us);
      const std::int64_t to = i + 1 < line.size() ? line[i + 1].first : now_us;
      if (to < from) continue;  // this price ended before since_us
      ++out.points;
      out.from_us = std::min(out.from_us, from);
      stood.emplace_back(line[i].second, to - from);
      whole_us += to - from;
    }
  std::sort(stood.begin(), stood.end());
  if (stood.empty()) return out;
  out.lowest = stood.front().first;
  out.highest = stood.back().first;
  std::int64_t sum_us = 0;
  for (const auto& [price, us] : stood) {
    out.median = price;
    if ((sum_us += us) * 2 >= whole_us) break;
  }
  out.now = cheapest(zones, now_us);
  for (int i = 1; i <= samples_count; ++i)
    out.samples.push_back(cheapest(zones, since_us + (now_us - since_us) / samples_count * i));
  out.samples.back() = out.now;
  return out;
}

}  // namespace

std::vector<TypeHistory> summarize(const std::string& provider, const std::vector<PricePoint>& points,
                                   std::int64_t since_us, std::int64_t now_us) {
  // key: type and currency; value: zones
  std::map<std::pair<std::string, std::string>, std::map<std::string, Line>> types;
  for (const PricePoint& p : points)
    if (p.from_wall_us <= now_us) types[{p.type, p.currency}][p.zone].emplace_back(p.from_wall_us, p.micros_per_hour);
  std::vector<TypeHistory> out;
  for (auto& [what, zones] : types) {
    for (auto& [zone, line] : zones) std::sort(line.begin(), line.end());
    TypeHistory one = summed(zones, since_us, now_us);
    one.provider = provider;
    one.type = what.first;
    one.currency = what.second;
    if (one.points > 0) out.push_back(std::move(one));
  }
  std::stable_sort(out.begin(), out.end(), [](const TypeHistory& a, const TypeHistory& b) { return a.now < b.now; });
  return out;
}

Value TypeHistory::to_value() const {
  const auto money = [](Micros micros) { return static_cast<double>(micros) / 1e6; };
  Value out;
  out.set("provider", provider).set("type", type).set("currency", currency).set("zones", zones).set("points", points);
  out.set("lowest", money(lowest)).set("median", money(median)).set("highest", money(highest)).set("now", money(now));
  Value::Array list;
  for (const Micros s : samples)
    if (s >= 0) list.push_back(money(s));
  return out.set("from", format_utc(from_us)).set("samples", std::move(list));
}

std::string sparkline(const std::vector<Micros>& samples) {
  static const char* const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  Micros least = -1, most = -1;
  for (const Micros s : samples)
    if (s >= 0) least = least < 0 ? s : std::min(least, s), most = std::max(most, s);
  std::string out;
  for (const Micros s : samples) out += s < 0 ? " " : heights[most == least ? 0 : (s - least) * 7 / (most - least)];
  return out;
}

}  // namespace rille::provider
