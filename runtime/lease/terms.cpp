#include "runtime/lease/terms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

}  // namespace

Result<Terms> read_terms(const Value& options) {
  static const std::vector<std::string> own = {"provider", "ttl", "min_ttl", "orphan_after"};
  Terms terms;
  Value query;
  if (const Value::Object* o = options.as_object()) {
    for (const auto& [key, value] : *o) {
      const auto& theirs = provider::OfferQuery::fields();
      bool known = std::find(theirs.begin(), theirs.end(), key) != theirs.end() ||
                   std::find(own.begin(), own.end(), key) != own.end();
      if (!known) {
        std::vector<std::string> all = own;
        all.insert(all.end(), theirs.begin(), theirs.end());
        std::string near = did_you_mean(key, all);
        return make_error(ErrorKind::invalid, fmt::format("rent has no option '{}'", key),
                          near.empty() ? fmt::format("options: {}", fmt::join(all, " "))
                                       : fmt::format("did you mean {}?", near));
      }
      if (key == "ttl" || key == "min_ttl" || key == "orphan_after") continue;
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
  terms.min_ttl_ms = std::min(terms.min_ttl_ms, terms.ttl_ms);
  RILLE_TRY(terms.query, provider::OfferQuery::from_value(query));
  return terms;
}

Result<> check_budget(store::Db& db, Lease& lease, const Terms& terms, std::int64_t now_us) {
  std::int64_t limit = -1;
  RILLE_CHECK(db.query("SELECT budget_micros FROM runs WHERE id=? AND budget_micros IS NOT NULL", {lease.run},
                       [&](const store::Row& row) { limit = row.integer(0); }));
  if (limit < 0 || lease.price_micros_per_hour == 0) return {};
  RILLE_TRY(auto held, read_leases(db, "WHERE run=?", {lease.run}));
  Micros reserved = 0;
  for (const Lease& other : held) {
    if (other.id == lease.id) continue;
    // A released lease has cost what it has cost; a live one may run to its end.
    reserved += other.billable()
                    ? cost_micros(other.price_micros_per_hour, (other.expires_us - other.created_us) / 1000)
                    : other.spent_micros(now_us);
  }
  Micros left = limit - reserved;
  std::int64_t affordable_ms =
      left <= 0
          ? 0
          : static_cast<std::int64_t>(static_cast<__int128>(left) * 3'600'000 / lease.price_micros_per_hour);
  if (affordable_ms >= terms.ttl_ms) return {};
  if (affordable_ms < terms.min_ttl_ms)
    return make_error(
        ErrorKind::budget,
        fmt::format("renting '{}' at {} per hour would exceed the run's budget: {} of {} are left",
                    lease.name, format_dollars(lease.price_micros_per_hour),
                    format_dollars(std::max<Micros>(left, 0)), format_dollars(limit)),
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
