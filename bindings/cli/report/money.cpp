// What a run's machines cost, over time.
#include <algorithm>

#include "bindings/cli/report/report.hpp"

namespace rille::cli {

namespace {

struct Piece {
  std::int64_t from_us, to_us;
  double weight;  // price per hour times duration
};

// The pieces of one price, from which the cost of a machine follows.
std::vector<Piece> pieces_of(const lease::Tenure& t, std::int64_t end_us) {
  std::vector<Piece> out;
  double sum = 0;
  for (const lease::Segment& s : t.segments) {
    const std::int64_t to = std::min(s.to_us ? s.to_us : end_us, end_us);
    if (s.amount || s.micros_per_hour <= 0 || to <= s.from_us || t.currency_of(s) != "USD") continue;
    out.push_back({s.from_us, to, static_cast<double>(s.micros_per_hour) * static_cast<double>(to - s.from_us)});
    sum += out.back().weight;
  }
  if (sum > 0) return out;
  return {{t.from_us, std::max(end_us, t.from_us + 1), 1}};  // a bill without prices
}

// Spreads the cost over the pieces; the parts add up to it.
void spread(Value::Array& out, const std::vector<Piece>& pieces, Micros cost, std::int64_t begin_us) {
  double sum = 0, done = 0;
  for (const Piece& p : pieces) sum += p.weight;
  Micros given = 0;
  for (const Piece& p : pieces) {
    done += p.weight;
    const bool last = &p == &pieces.back();
    const Micros upto = last ? cost : static_cast<Micros>(static_cast<double>(cost) * (done / sum));
    Value::Array piece{static_cast<double>(p.from_us - begin_us) / 1e6, static_cast<double>(p.to_us - begin_us) / 1e6,
                       upto - given};
    out.push_back(std::move(piece));
    given = upto;
  }
}

}  // namespace

Value money_of(const std::vector<lease::Lease>& leases, const lease::Money* budget, std::int64_t begin_us,
               std::int64_t now_us) {
  Value::Array pieces;
  lease::Amounts all;
  Micros spent = 0;
  bool unknown = false;
  for (const lease::Lease& l : leases)
    for (const lease::Tenure& t : l.tenures) {
      lease::add_to(all, t.costs(now_us));
      unknown = unknown || t.unknown();
      const Micros cost = t.cost(now_us);
      spent += cost;
      const std::int64_t end = t.to_us ? t.to_us : std::max(now_us, t.from_us);
      if (cost > 0) spread(pieces, pieces_of(t, end), cost, begin_us);
    }
  Value v;
  v.set("pieces", std::move(pieces)).set("spent_micros", spent).set("shown", lease::to_string(all));
  if (!lease::only_dollars(all)) v.set("costs", lease::to_value(all));
  if (unknown) v.set("unknown", true);
  if (budget && budget->limit >= 0) v.set("limit_micros", budget->limit);
  return v;
}

}  // namespace rille::cli
