#include "runtime/lease/terms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "runtime/base/time.hpp"
#include "runtime/lease/rows.hpp"

namespace rille::lease {

namespace {

Result<> read_duration(const Value& options, const char* key, std::int64_t& out) {
  const Value& v = options[key];
  if (v.is_null()) return {};
  if (const double* seconds = v.as_number()) {
    if (!(*seconds > 0))
      return make_error(ErrorKind::invalid,
                        fmt::format("{} = {}: a duration must be positive", key, *seconds));
    out = static_cast<std::int64_t>(*seconds * 1000);
    return {};
  }
  const std::string* text = v.as_string();
  if (!text)
    return make_error(ErrorKind::invalid, fmt::format("{} must be a duration", key),
                      "write it as \"6h\" or in seconds");
  Result<std::int64_t> ms = parse_duration_ms(*text);
  if (!ms) return make_error(ErrorKind::invalid, fmt::format("{}: {}", key, ms.error().message), ms.error().hint);
  out = *ms;
  return {};
}

const std::vector<std::string>& durations() {
  static const std::vector<std::string> names = {"ttl", "min_ttl", "orphan_after", "hold_ttl"};
  return names;
}

std::string counted(std::int64_t leases) { return fmt::format("{} lease{}", leases, leases == 1 ? "" : "s"); }

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Words that other tools have, or that Rille will: the reader is told so, instead of being offered a neighbour.
Error unknown_option(const std::string& key, const std::vector<std::string>& all) {
  static const std::map<std::string, std::string> ahead = {
      {"detach", "a lease ends with its scope; return the box from the scope to keep it longer"},
      {"budget", "a budget is of the whole run: rille.budget { limit = 5.00 }"},
      {"disk", "no provider here rents disks; the `local` one uses this machine's"},
      {"container", "no provider here starts containers; start one with box:exec"},
      {"image", "no provider here takes images; install with box:exec"},
      {"ports", "no provider here opens ports"},
      {"setup", "run it with box:exec after renting"},
      {"price", "prices come with the offers; max_price limits them"},
      {"unguarded", "every provider here guards its machines"}};
  if (auto it = ahead.find(key); it != ahead.end())
    return make_error(ErrorKind::invalid, fmt::format("rent has no option '{}' yet", key), it->second);
  std::string near = did_you_mean(key, all);
  return make_error(ErrorKind::invalid, fmt::format("rent has no option '{}'", key),
                    near.empty() ? fmt::format("options: {}", fmt::join(all, " "))
                                 : fmt::format("did you mean {}?", near));
}

}  // namespace

Result<Terms> read_terms(const Value& options) {
  std::vector<std::string> all = durations();
  all.push_back("provider");
  all.insert(all.end(), provider::OfferQuery::fields().begin(), provider::OfferQuery::fields().end());
  Terms terms;
  Value query;
  if (const Value::Object* o = options.as_object()) {
    for (const auto& [key, value] : *o) {
      if (!among(all, key)) return unknown_option(key, all);
      if (among(durations(), key)) continue;
      if (key == "provider") {
        if (!value.as_string())
          return make_error(ErrorKind::invalid, "provider must be a name", "e.g. provider = \"local\"");
        terms.provider = *value.as_string();
      } else {
        query.set(key, value);
      }
    }
  }
  RILLE_CHECK(read_duration(options, "ttl", terms.ttl_ms));
  RILLE_CHECK(read_duration(options, "min_ttl", terms.min_ttl_ms));
  RILLE_CHECK(read_duration(options, "orphan_after", terms.orphan_after_ms));
  RILLE_CHECK(read_duration(options, "hold_ttl", terms.hold_ms));
  terms.min_ttl_ms = std::min(terms.min_ttl_ms, terms.ttl_ms);
  RILLE_TRY(terms.query, provider::OfferQuery::from_value(query));
  return terms;
}

Result<Money> count_money(store::Db& db, const std::string& run, const std::string& but, std::int64_t now_us) {
  Money out;
  RILLE_CHECK(db.query("SELECT budget_micros FROM runs WHERE id=? AND budget_micros IS NOT NULL", {run},
                       [&](const store::Row& row) { out.limit = row.integer(0); }));
  RILLE_TRY(auto leases, read_leases(db, "WHERE run=? AND id<>?", {run, but}));
  for (const Lease& l : leases) {
    // A released lease has cost what it has cost; another may run to its end, and has if it is late.
    Micros whole = cost_micros(l.price_micros_per_hour, (l.expires_us - l.created_us) / 1000);
    if (l.billable()) out.reserved += std::max(whole, l.spent_micros(now_us)), ++out.held;
    else out.spent += l.spent_micros(now_us);
  }
  return out;
}

Result<> reserve(store::Db& db, Lease& lease, const Terms& terms, std::int64_t leases_max, std::int64_t now_us) {
  RILLE_TRY(Money money, count_money(db, lease.run, lease.id, now_us));
  if (leases_max >= 0 && money.held >= leases_max)
    return make_error(ErrorKind::quota,
                      fmt::format("the run holds {}, and the host program allows {}", counted(money.held), leases_max),
                      "release one first, or raise the limit leases_max");
  Micros price = lease.price_micros_per_hour;
  if (money.limit < 0 || price == 0) return {};
  Micros left = std::max<Micros>(money.limit - money.spent - money.reserved, 0);
  auto affordable_ms = static_cast<std::int64_t>(static_cast<__int128>(left) * 3'600'000 / price);
  if (affordable_ms >= terms.ttl_ms) return {};
  if (affordable_ms < terms.min_ttl_ms)
    return make_error(
        ErrorKind::budget,
        fmt::format("renting '{}' would exceed the run's budget of {}: {} are spent, {} reserved by {}; asked "
                    "were {} ({} at {} per hour, at least {}), and {} are left",
                    lease.name, format_dollars(money.limit), format_dollars(money.spent),
                    format_dollars(money.reserved), counted(money.held),
                    format_dollars(cost_micros(price, terms.ttl_ms)), format_duration_ms(terms.ttl_ms),
                    format_dollars(price), format_duration_ms(terms.min_ttl_ms), format_dollars(left)),
        "raise the budget, choose a cheaper offer, or shorten ttl and min_ttl");
  lease.expires_us = lease.created_us + affordable_ms * 1000;
  return {};
}

Error nothing_to_rent(const Terms& terms, bool refused) {
  std::string where = terms.provider.empty() ? "any provider" : "provider '" + terms.provider + "'";
  return make_error(ErrorKind::capacity,
                    fmt::format("{} has nothing for gpu = \"{}\"{}", where, terms.query.gpu,
                                refused ? " that it would give" : ""),
                    "see what there is with `rille offers`; gpu = \"any\" also takes this machine's CPU");
}

}  // namespace rille::lease
