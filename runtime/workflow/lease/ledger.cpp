#include "runtime/workflow/lease/ledger.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include "runtime/core/base/object_value.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

namespace {

constexpr __int128 ms_per_hour = 3'600'000;

std::int64_t billed_ms(const provider::Billing& b, std::int64_t ms) {
  std::int64_t unit_ms = std::max<std::int64_t>(b.unit_s, 1) * 1000;
  return std::max((ms + unit_ms - 1) / unit_ms * unit_ms, b.minimum_s * 1000);
}

Micros micros_of(__int128 micro_ms) { return static_cast<Micros>((micro_ms + ms_per_hour - 1) / ms_per_hour); }

// A machine that changed its type is billed like several consecutive machines, its parts. Returns the index of the part
// that a segment belongs to.
std::size_t part_of(const Tenure& t, const Segment& s) {
  return static_cast<std::size_t>(
      std::count_if(t.restarts.begin(), t.restarts.end(), [&s](const Restart& r) { return r.from_us <= s.from_us; }));
}

// The cost of the machine itself during one part: from the start of its first price to the end of its last one.
Micros part_cost(const Tenure& t, std::size_t part, std::int64_t end) {
  const provider::Billing& billing = part ? t.restarts[part - 1].billing : t.billing;
  std::int64_t from = 0, until = 0;
  __int128 machine = 0;
  Micros last_price = 0;
  for (const Segment& s : t.segments) {
    if (s.amount || s.part != "machine" || part_of(t, s) != part) continue;
    const std::int64_t to = std::min(s.to_us ? s.to_us : end, end);
    if (!from) from = until = s.from_us;
    last_price = std::max<Micros>(s.micros_per_hour, 0);
    machine += static_cast<__int128>(last_price) * (std::max<std::int64_t>(0, to - s.from_us) / 1000);
    until = std::max(until, to);
  }
  if (!from) return 0;
  const std::int64_t ms = std::max<std::int64_t>(0, until - from) / 1000;
  machine += static_cast<__int128>(last_price) * (billed_ms(billing, ms) - ms);
  return std::max(micros_of(machine), billing.minimum_micros);
}

const std::string& currency_of_part(const Tenure& t, std::size_t part) {
  return part ? t.restarts[part - 1].currency : t.currency;
}

const std::string usd = "USD";

// The cost of a disk or public address, for the time that it existed, to the millisecond.
Micros beside_cost(const Tenure& t, std::string_view part, std::int64_t end) {
  __int128 sum = 0;
  for (const Segment& s : t.segments)
    if (!s.amount && s.part == part)
      sum += static_cast<__int128>(std::max<Micros>(s.micros_per_hour, 0)) *
             (std::max<std::int64_t>(0, std::min(s.to_us ? s.to_us : end, end) - s.from_us) / 1000);
  return micros_of(sum);
}

std::int64_t end_of(const Tenure& t, std::int64_t now_us) { return t.to_us ? t.to_us : std::max(now_us, t.from_us); }

// Calls add() for each cost in its currency: the bill, the machine, its disk, its address.
template <typename Add>
void each_cost(const Tenure& t, std::int64_t end, Add add) {
  for (const Segment& s : t.segments)
    if (s.amount) add("bill", usd, *s.amount);
  for (std::size_t part = 0; part <= t.restarts.size(); ++part)
    add("machine", currency_of_part(t, part), part_cost(t, part, end));
  add("disk", t.disk_currency, beside_cost(t, "disk", end));
  add("address", usd, beside_cost(t, "address", end));
}

}  // namespace

Micros billed_micros(const provider::Billing& billing, Micros price, Micros beside, std::int64_t ms) {
  __int128 machine = static_cast<__int128>(std::max<Micros>(price, 0)) * billed_ms(billing, ms);
  return std::max(micros_of(machine), billing.minimum_micros) + cost_micros(std::max<Micros>(beside, 0), ms);
}

// The cost in dollars. Sums are exact, and rounded up once per part and per machine type.
Micros Tenure::cost(std::int64_t now_us) const {
  Micros sum = 0;
  each_cost(*this, end_of(*this, now_us), [&sum](std::string_view, const std::string& in, Micros amount) {
    if (in == usd) sum += amount;
  });
  return sum;
}

Amounts Tenure::costs(std::int64_t now_us) const {
  Amounts sum;
  each_cost(*this, end_of(*this, now_us), [&sum](std::string_view, const std::string& in, Micros amount) {
    if (amount) sum[in] += amount;
  });
  return sum;
}

const std::string& Tenure::currency_of(const Segment& s) const {
  if (s.amount || s.part == "address") return usd;
  return s.part == "disk" ? disk_currency : currency_of_part(*this, part_of(*this, s));
}

Price Tenure::price() const {
  for (auto s = segments.rbegin(); s != segments.rend(); ++s)
    if (s->part == "machine" && !s->amount) return {s->micros_per_hour, currency_of(*s)};
  return {};
}

void add_to(Amounts& sum, const Amounts& more) {
  for (const auto& [currency, amount] : more) sum[currency] += amount;
}

bool only_dollars(const Amounts& amounts) { return amounts.empty() || (amounts.size() == 1 && amounts.contains(usd)); }

std::string to_string(const Amounts& amounts) {
  std::string out;
  if (const auto dollars = amounts.find(usd); dollars != amounts.end()) out = format_dollars(dollars->second);
  for (const auto& [currency, amount] : amounts)
    if (currency != usd) out += (out.empty() ? "" : " + ") + format_money(amount, currency);
  return out.empty() ? format_dollars(0) : out;
}

Value to_value(const Amounts& amounts) {
  Value out{Value::Object{}};
  for (const auto& [currency, amount] : amounts) out.set(currency, static_cast<double>(amount) / 1e6);
  return out;
}

std::string Price::shown() const { return micros < 0 ? "?" : format_money(micros, currency); }

Price counted(Micros dollars, Micros asked, const provider::Offer& offer) {
  if (dollars >= 0 || asked < 0 || offer.currency.empty()) return {dollars, usd};
  return {asked, offer.currency};
}

bool Tenure::unknown() const {
  return std::any_of(segments.begin(), segments.end(),
                     [](const Segment& s) { return !s.amount && s.micros_per_hour < 0; });
}

std::int64_t Tenure::lived_us(std::int64_t now_us) const {
  return std::max<std::int64_t>(0, (to_us ? to_us : now_us) - from_us);
}

std::int64_t Tenure::starting_us(std::int64_t now_us) const {
  std::int64_t end = to_us ? to_us : now_us;
  return std::max<std::int64_t>(0, (ready_us ? std::min(ready_us, end) : end) - from_us);
}

std::int64_t Tenure::idle_us(std::int64_t now_us) const {
  std::int64_t busy = busy_us + (busy_since_us && !to_us ? std::max<std::int64_t>(0, now_us - busy_since_us) : 0);
  return std::max<std::int64_t>(0, lived_us(now_us) - starting_us(now_us) - busy);
}

Value Tenure::to_value(std::int64_t now_us) const {
  auto seconds = [](std::int64_t us) { return static_cast<double>(us) / 1e6; };
  const std::int64_t end = end_of(*this, now_us);
  const bool estimated = !reconciled();
  ObjectValue v;
  Micros machine = 0, disk = 0, address = 0;  // in dollars
  each_cost(*this, end, [&](std::string_view part, const std::string& in, Micros amount) {
    if (in == usd) (part == "disk" ? disk : part == "address" ? address : machine) += amount;
  });
  const Amounts all = costs(now_us);
  if (estimated) v.set("address_micros", address);
  v.set("cost_micros", cost(now_us));
  if (!only_dollars(all)) v.set("costs", lease::to_value(all));
  if (estimated) v.set("disk_micros", disk);
  v.set("from", format_utc(from_us)).set("generation", generation).set("idle_seconds", seconds(idle_us(now_us)));
  v.set("machine", machine_id);
  if (estimated) v.set("machine_micros", machine);
  v.set("provider", provider).set("reconciled", !estimated).set("region", region);
  v.set("seconds", seconds(lived_us(now_us)));
  Value::Array pieces;
  for (const Segment& s : segments) {
    ObjectValue piece;
    if (s.amount) piece.set("amount_micros", *s.amount);
    if (currency_of(s) != usd) piece.set("currency", currency_of(s));
    piece.set("from", format_utc(s.from_us));
    if (!s.amount && s.micros_per_hour >= 0) piece.set("micros_per_hour", s.micros_per_hour);
    piece.set("part", s.part);
    if (s.to_us) piece.set("to", format_utc(s.to_us));
    pieces.push_back(std::move(piece).take());
  }
  v.set("segments", std::move(pieces)).set("starting_seconds", seconds(starting_us(now_us)));
  if (to_us) v.set("to", format_utc(to_us));
  return std::move(v).take();
}

std::string month_of(std::int64_t us) { return format_utc(us).substr(0, 7); }

std::int64_t month_start_us(std::int64_t us) {
  std::time_t seconds = us / 1'000'000;
  std::tm t{};
  gmtime_r(&seconds, &t);
  t.tm_mday = 1;
  t.tm_hour = t.tm_min = t.tm_sec = 0;
  return static_cast<std::int64_t>(timegm(&t)) * 1'000'000;
}

std::vector<std::pair<std::string, Amounts>> by_month(const Tenure& tenure, std::int64_t now_us) {
  constexpr std::int64_t day_us = 86'400'000'000;
  const std::int64_t end = end_of(tenure, now_us);
  const __int128 whole = end - tenure.from_us;
  const Amounts costs = tenure.costs(now_us);
  std::vector<std::pair<std::string, Amounts>> out;
  Amounts given;
  for (std::int64_t from = tenure.from_us;;) {
    std::int64_t next = month_start_us(month_start_us(from) + 40 * day_us), to = std::min(next, end);
    Amounts& share = out.emplace_back(month_of(from), Amounts()).second;
    for (const auto& [currency, cost] : costs) {
      const auto until =
          to == end ? cost : static_cast<Micros>(static_cast<__int128>(cost) * (to - tenure.from_us) / whole);
      share[currency] = until - std::exchange(given[currency], until);
    }
    if (to == end) return out;
    from = next;
  }
}

}  // namespace rille::lease
