#include "runtime/workflow/lease/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/lease/parts.hpp"
#include "runtime/workflow/lease/tally.hpp"
#include "runtime/workflow/lease/volumes.hpp"
#include "runtime/workflow/provider/catalogue/list_price.hpp"

namespace rille::lease {

namespace {

std::string counted_leases(std::int64_t leases) { return fmt::format("{} lease{}", leases, leases == 1 ? "" : "s"); }

Money named(std::string scope, Micros limit) {
  Money m;
  m.name = scope == "month" ? "this month's budget" : fmt::format("the budget of tag '{}'", scope.substr(4));
  m.scope = std::move(scope);
  m.limit = limit;
  return m;
}

Tally tally_of(const Money& money, std::int64_t now_us) {
  return money.scope == "month" ? tally_of_month(now_us) : tally_of_tag(money.scope.substr(4));
}

struct Limited {
  Money money;
  std::int64_t alert_percent = 0;
  std::string alerted, url;
};

Result<std::vector<Limited>> read_limits(store::Db& db) {
  std::vector<Limited> out;
  RILLE_CHECK(db.query("SELECT scope,limit_micros,alert_percent,alerted,alert_url FROM budgets ORDER BY scope", {},
                       [&](const store::Row& row) {
                         Limited l;
                         l.money = named(row.text(0), row.integer(1));
                         l.alert_percent = row.integer(2);
                         l.alerted = row.text(3);
                         l.url = row.text(4);
                         out.push_back(std::move(l));
                       }));
  return out;
}

Micros left_of(const Money& m) { return std::max<Micros>(m.limit - m.spent - m.reserved, 0); }

// The cost per hour of the disk and the public address, in addition to the machine.
Micros beside_of(const Lease& l, Micros address) {
  return std::max<Micros>(l.disk_micros_per_hour, 0) + std::max<Micros>(address, 0);
}

// How long the money `left` can pay for the lease, in whole billing units; at most ttl_ms.
std::int64_t affordable_ms(const Lease& l, Micros beside, Micros left, std::int64_t ttl_ms, std::int64_t teardown_ms) {
  const provider::Billing& b = l.request.offer.billing;
  auto cost = [&](std::int64_t ms) { return billed_micros(b, l.cap_micros_per_hour, beside, ms + teardown_ms); };
  if (cost(ttl_ms) <= left) return ttl_ms;
  std::int64_t low = 0, high = ttl_ms;  // cost() is monotonic: the longest affordable time lies between these
  if (cost(0) > left) return 0;
  while (high - low > 1) {
    std::int64_t middle = low + (high - low) / 2;
    (cost(middle) <= left ? low : high) = middle;
  }
  return low;
}

Error too_dear(const Lease& l, const Terms& terms, const Money& m, Micros asked, Micros beside) {
  Error e = make_error(ErrorKind::budget,
                       fmt::format("renting '{}' would exceed {} of {}: {} are spent, {} reserved by {}; it needs {} "
                                   "({} at {} per hour, at least {}), but {} are left",
                                   l.name, m.name, format_dollars(m.limit), format_dollars(m.spent),
                                   format_dollars(m.reserved), counted_leases(m.held), format_dollars(asked),
                                   format_duration_ms(terms.ttl_ms), format_dollars(l.cap_micros_per_hour + beside),
                                   format_duration_ms(terms.min_ttl_ms), format_dollars(left_of(m))),
                       "raise the budget, choose a cheaper offer, or shorten ttl and min_ttl");
  e.code = m.scope;
  return e;
}

// The hint that tells the user how to give an exchange rate for the offer's currency.
std::string say_rate(const provider::Offer& o) {
  return fmt::format(
      "rates = {{ {0} = dollars for one }}, for all rents \"rates\": {{\"{0}\": ..}} in the providers' "
      "settings",
      o.currency);
}

Error no_price(const Lease& l, const Money& m) {
  const provider::Offer& o = l.request.offer;
  const bool machine = l.cap_micros_per_hour < 0, disk = !machine && l.disk_micros_per_hour < 0;
  const bool address = !machine && !disk;  // only the address price is missing
  const bool said = o.currency == "USD" || address || (disk && o.disk_micros_per_gb_hour <= 0);
  std::string why = fmt::format("the price {}{}",
                                disk      ? "of its disk "
                                : address ? "of its public address "
                                          : "",
                                said ? "is not known" : fmt::format("is in {}, which is not converted", o.currency));
  const std::string rate = say_rate(o);
  std::string hint = "say " + rate;
  if (machine) hint = "set its price: price = dollars per hour" + (o.currency == "USD" ? "" : ", or " + rate);
  // a list price is no known price: it counts only if the user says it
  if (const provider::ListPrice* listed = machine ? provider::list_price_of(o) : nullptr)
    hint += fmt::format(" (its {} is {:g}, which may have changed)", provider::list_price_words(listed->date),
                        listed->dollars);
  const auto setting = [&o](const char* what, const char* name, const char* price) {
    return fmt::format("write into the providers' settings what {}: \"{}\": {{\"{}\": {}}}", what, name, o.provider,
                       price);
  };
  if (disk && o.disk_micros_per_gb_hour <= 0) hint = setting("a gigabyte costs per month", "disk_price", "0.08");
  if (address) hint = setting("one costs per hour", "address_price", "0.005");
  return make_error(
      ErrorKind::budget,
      fmt::format("'{}' cannot be rented under {}: of offer {} at {} {}", l.name, m.name, o.id, o.provider, why), hint);
}

}  // namespace

Result<std::vector<Money>> count_money(store::Db& db, const std::string& run, const std::string& but,
                                       std::int64_t now_us, bool own, Count count) {
  std::vector<Money> out;
  const auto add = [&](Money& money, const Tally& tally) {
    return count == Count::kept ? add_kept(db, money, tally, now_us) : add_all(db, money, tally, but, now_us);
  };
  std::string tag;
  Micros month = -1;
  bool limits_there = true;  // few homes have limits: this saves a statement per rent
  // The run's own budget, then those of its parent runs.
  for (std::string id = run, parent; out.empty() || !id.empty(); id = std::exchange(parent, "")) {
    Money m;
    m.scope = out.empty() ? "run" : "run:" + id;
    m.name = out.empty() ? "the run's budget" : "the budget of its parent " + id;
    RILLE_CHECK(
        db.query("SELECT budget_micros,month_micros,tag,parent,EXISTS(SELECT 1 FROM budgets) FROM runs "
                 "WHERE id=?",
                 {id}, [&](const store::Row& row) {
                   if (!row.null(0)) m.limit = row.integer(0);
                   if (!row.null(1)) month = month < 0 ? row.integer(1) : std::min(month, row.integer(1));
                   if (out.empty()) tag = row.text(2);
                   parent = row.text(3);
                   limits_there = row.integer(4) != 0;
                 }));
    const bool counts = m.limit >= 0 || (out.empty() && own);
    if (counts) RILLE_CHECK(add(m, tally_of_family(id)));
    if (counts || out.empty()) out.push_back(std::move(m));
  }
  std::vector<Limited> limits;
  if (limits_there) { RILLE_TRY(limits, read_limits(db)); }
  for (Limited& l : limits) {
    if (l.money.scope == "month") month = month < 0 ? l.money.limit : std::min(month, l.money.limit);
    else if (l.money.scope == "tag:" + tag) out.push_back(std::move(l.money));
  }
  if (month >= 0) out.push_back(named("month", month));
  for (Money& m : out)
    if (!m.scope.starts_with("run")) RILLE_CHECK(add(m, tally_of(m, now_us)));
  return out;
}

Result<std::vector<Money>> count_home(store::Db& db, std::int64_t now_us) {
  RILLE_TRY(std::vector<Limited> limits, read_limits(db));
  std::vector<Money> out;
  for (Limited& l : limits) {
    RILLE_CHECK(add_all(db, l.money, tally_of(l.money, now_us), "", now_us));
    out.push_back(std::move(l.money));
  }
  return out;
}

namespace {

// own: what the run of the lease holds, with its child runs.
Result<> check_leases(store::Db& db, const Lease& lease, const LeaseLimit& most, const Money& own, Count count,
                      std::int64_t now_us) {
  if (most.leases < 0) return {};
  std::int64_t held = own.held;
  std::string holds = fmt::format("the run holds {}", counted_leases(held));
  if (!most.run.empty() && most.run != lease.run) {
    Money all;
    const Tally family = tally_of_family(most.run);
    RILLE_CHECK(count == Count::kept ? add_kept(db, all, family, now_us) : add_all(db, all, family, lease.id, now_us));
    held = all.held;
    holds = fmt::format("run {} and its child runs hold {}", most.run, counted_leases(held));
  }
  if (held < most.leases) return {};
  return make_error(
      ErrorKind::quota, fmt::format("{}, and the host program allows {}", holds, most.leases),
      most.leases > 0 ? "release one first, or raise the limit leases_max" : "raise the limit leases_max");
}

}  // namespace

Result<> reserve(store::Db& db, Lease& lease, const Terms& terms, const LeaseLimit& most, std::int64_t teardown_ms,
                 std::int64_t now_us, Micros address) {
  const Count count = lease.seen.state.empty() ? Count::kept : Count::anew;  // kept sums cannot exclude one lease
  RILLE_TRY(std::vector<Money> scopes, count_money(db, lease.run, lease.id, now_us, most.leases >= 0, count));
  // The cost of the lease's earlier machines counts as spent.
  Micros before = 0;
  for (const Tenure& t : lease.tenures) before += t.cost(now_us);
  for (Money& m : scopes) m.spent += m.scope == "month" && is_volume(lease) ? month_micros(lease, now_us) : before;
  RILLE_CHECK(check_leases(db, lease, most, scopes[0], count, now_us));
  const Money* tightest = nullptr;
  for (const Money& m : scopes)
    if (m.limit >= 0 && (!tightest || left_of(m) < left_of(*tightest))) tightest = &m;
  const std::int64_t ttl_ms = (lease.expires_us - now_us) / 1000;
  std::int64_t ms = ttl_ms;
  // A default disk of unknown price does not prevent renting; the lease then shows that the price is unknown.
  const bool disk_known = lease.disk_micros_per_hour >= 0 || terms.disk_bytes == 0;
  const bool known = lease.cap_micros_per_hour >= 0 && disk_known && address >= 0;
  const Micros beside = beside_of(lease, address);
  auto cost = [&](std::int64_t length_ms) {
    return billed_micros(lease.request.offer.billing, lease.cap_micros_per_hour, beside, length_ms);
  };
  if (tightest && !known) return no_price(lease, *tightest);
  if (tightest && cost(ttl_ms + teardown_ms) > 0) {
    ms = affordable_ms(lease, beside, left_of(*tightest), ttl_ms, teardown_ms);
    if (ms < std::min(terms.min_ttl_ms, ttl_ms))
      return too_dear(lease, terms, *tightest, cost(ttl_ms + teardown_ms), beside);
    if (ms < ttl_ms) lease.expires_us = now_us + ms * 1000;
  }
  lease.reserved_micros = cost(ms + teardown_ms);
  return {};
}

Result<> reserve_change(store::Db& db, Lease& lease, std::int64_t teardown_ms, std::int64_t now_us) {
  constexpr std::int64_t surely_over_us = 600'000'000;
  Change& to = *lease.change;
  RILLE_TRY(std::vector<Money> scopes, count_money(db, lease.run, lease.id, now_us, false));
  Micros before = 0, asked = 0;
  for (const Tenure& t : lease.tenures) {
    if (t.generation == lease.generation) asked += t.cost(now_us + surely_over_us);
    else before += t.cost(now_us);
  }
  const std::int64_t left_ms = std::max<std::int64_t>(0, lease.expires_us - now_us) / 1000;
  RILLE_TRY(const Micros address, address_micros(db, lease));
  const Micros beside = beside_of(lease, address);
  asked += billed_micros(to.offer.billing, to.cap_micros_per_hour, beside, left_ms + teardown_ms);
  const Money* tightest = nullptr;
  for (Money& m : scopes) {
    m.spent += before;
    if (m.limit >= 0 && (!tightest || left_of(m) < left_of(*tightest))) tightest = &m;
  }
  if (tightest && to.cap_micros_per_hour < 0)
    return make_error(
        ErrorKind::budget,
        fmt::format("'{}' cannot become {} under {}: its price is not known in dollars", lease.name, to.offer.id,
                    tightest->name),
        "set its price: price = dollars per hour" + (to.offer.currency == "USD" ? "" : ", or " + say_rate(to.offer)));
  if (tightest && asked > lease.reserved_micros && asked > left_of(*tightest)) {
    Error e = make_error(
        ErrorKind::budget,
        fmt::format("making '{}' {} at {} per hour would exceed {} of {}: until its end it may cost {}, and {} are "
                    "left for it",
                    lease.name, to.offer.id, format_dollars(to.cap_micros_per_hour), tightest->name,
                    format_dollars(tightest->limit), format_dollars(asked), format_dollars(left_of(*tightest))),
        "raise the budget, or choose a cheaper type");
    e.code = tightest->scope;
    return e;
  }
  to.reserved_before = lease.reserved_micros;
  to.reserved_after = asked;
  lease.reserved_micros = std::max(lease.reserved_micros, asked);
  return {};
}

Result<> set_limit(store::Db& db, const Limit& limit) {
  if (limit.micros < 0) return db.run("DELETE FROM budgets WHERE scope=?", {limit.scope});
  return db.run("INSERT OR REPLACE INTO budgets(scope,limit_micros,alert_percent,alert_url) VALUES(?,?,?,?)",
                {limit.scope, limit.micros, limit.alert_percent, limit.alert_url});
}

Result<std::vector<Alert>> take_alerts(store::Db& db, std::int64_t now_us) {
  std::vector<Alert> out;
  RILLE_TRY(std::vector<Limited> limits, read_limits(db));
  for (Limited& l : limits) {
    const std::string when = l.money.scope == "month" ? month_of(now_us) : "once";
    if (l.alert_percent <= 0 || l.alerted == when) continue;
    RILLE_CHECK(add_kept(db, l.money, tally_of(l.money, now_us), now_us));
    __int128 used = l.money.spent + l.money.reserved;
    if (used * 100 < static_cast<__int128>(l.money.limit) * l.alert_percent) continue;
    RILLE_CHECK(db.run("UPDATE budgets SET alerted=? WHERE scope=?", {when, l.money.scope}));
    out.push_back({std::move(l.money), std::move(l.url)});
  }
  return out;
}

}  // namespace rille::lease
