// Quotas of the accounts at all providers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/lease/queries.hpp"

namespace rille::lease {

namespace {

constexpr std::int64_t quotas_patience_ms = 60'000;

// Parses the query of rille.quotas. No `region`: all configured regions.
Result<provider::OfferQuery> read_quota_query(const Value& v) {
  static const std::vector<std::string> known = {"provider", "providers", "region"};
  Value query = Value::Object{};
  for (const auto& [key, value] : v.as_object() ? *v.as_object() : Value::Object()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string near = did_you_mean(key, known);
      return make_error(
          ErrorKind::invalid, fmt::format("rille.quotas has no option '{}'", key),
          near.empty() ? fmt::format("options: {}", fmt::join(known, " ")) : fmt::format("did you mean {}?", near));
    }
    query.set(key == "provider" ? "providers" : key, value);
  }
  return provider::OfferQuery::from_value(query);
}

}  // namespace

// Asks all providers concurrently, so that a failing or slow provider does not delay the others.
Async<Value> ProviderQueries::quotas(Value query, CancelToken token) {
  RILLE_CO_TRY(const provider::OfferQuery wanted, read_quota_query(query));
  for (const std::string& name : wanted.providers) RILLE_CO_CHECK(registry_.find(name));
  std::vector<Together<std::vector<provider::Quota>>> asked;
  std::vector<std::string> names;
  for (provider::Provider* p : registry_.all()) {
    if (!wanted.accepts_provider(p->name())) continue;
    names.push_back(p->name());
    asked.push_back({"asking '" + p->name() + "' for quotas",
                     [p, region = wanted.region](CancelToken t) { return p->quotas(region, t); }});
  }
  const auto answers = co_await together(loop_, std::move(asked), quotas_patience_ms, token);
  if (token.cancelled()) co_return token.reason();
  Value::Array out, errors;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i]) {
      for (const provider::Quota& one : *answers[i]) out.push_back(one.to_value().set("provider", names[i]));
      continue;
    }
    const Error& e = answers[i].error();
    if (provider::is_lack(e) && wanted.providers.empty()) continue;
    errors.push_back(Value().set("provider", names[i]).set("error", e.message));
    errors.back().set("kind", to_string(e.kind)).set("hint", e.hint);
  }
  out.insert(out.end(), errors.begin(), errors.end());
  co_return Value(std::move(out));
}

}  // namespace rille::lease
