// Past spot prices of all providers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/lease/queries.hpp"
#include "runtime/workflow/provider/price_history.hpp"

namespace rille::lease {

namespace {

constexpr std::int64_t history_patience_ms = 60'000, week_ms = 7LL * 86'400'000, since_ms_max = 366LL * 86'400'000;

struct History {
  provider::OfferQuery query;
  std::int64_t since_ms = week_ms;
};

Result<History> read_history_query(const Value& v) {
  static const std::vector<std::string> known = {"gpu",    "count",    "vcpus",     "memory",
                                                 "region", "provider", "providers", "since"};
  History out;
  Value query = Value::Object{};
  for (const auto& [key, value] : v.as_object() ? *v.as_object() : Value::Object()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string near = did_you_mean(key, known);
      return make_error(
          ErrorKind::invalid, fmt::format("rille.price_history has no option '{}'", key),
          near.empty() ? fmt::format("options: {}", fmt::join(known, " ")) : fmt::format("did you mean {}?", near));
    }
    if (key == "provider") query.set("providers", value);
    else if (key != "since") query.set(key, value);
  }
  if (const double* seconds = v["since"].as_number()) out.since_ms = static_cast<std::int64_t>(*seconds * 1000);
  else if (const std::string* text = v["since"].as_string()) {
    RILLE_TRY(out.since_ms, parse_duration_ms(*text));
  } else if (!v["since"].is_null())
    return make_error(ErrorKind::invalid, "since = " + v["since"].to_json() + ": expected a duration",
                      "since = \"7d\"");
  if (out.since_ms <= 0 || out.since_ms > since_ms_max)
    return make_error(ErrorKind::invalid, "since: expected a duration up to 366 days", "since = \"7d\"");
  RILLE_TRY(out.query, provider::OfferQuery::from_value(query));
  out.query.spot = true;
  return out;
}

}  // namespace

// Asks all providers concurrently, so that a failing or slow provider does not delay the others.
Async<Value> ProviderQueries::price_history(Value query, CancelToken token) {
  RILLE_CO_TRY(const History wanted, read_history_query(query));
  for (const std::string& name : wanted.query.providers) RILLE_CO_CHECK(registry_.find(name));
  const std::int64_t now = loop_.clock().wall_us(), since_us = now - wanted.since_ms * 1000;
  std::vector<Together<std::vector<provider::PricePoint>>> asked;
  std::vector<std::string> names;
  for (provider::Provider* p : registry_.all()) {
    if (!wanted.query.accepts_provider(p->name())) continue;
    names.push_back(p->name());
    asked.push_back({"asking '" + p->name() + "' what spot machines have cost",
                     [p, q = wanted.query, since_us](CancelToken t) { return p->price_history(q, since_us, t); }});
  }
  const auto answers = co_await together(loop_, std::move(asked), history_patience_ms, token);
  if (token.cancelled()) co_return token.reason();
  Value::Array out, errors;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i]) {
      for (const provider::TypeHistory& one : provider::summarize(names[i], *answers[i], since_us, now))
        out.push_back(one.to_value());
      continue;
    }
    const Error& e = answers[i].error();
    if (provider::is_lack(e) && wanted.query.providers.empty()) continue;
    errors.push_back(Value().set("provider", names[i]).set("error", e.message));
    errors.back().set("kind", to_string(e.kind)).set("hint", e.hint);
  }
  out.insert(out.end(), errors.begin(), errors.end());
  co_return Value(std::move(out));
}

}  // namespace rille::lease
