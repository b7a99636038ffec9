#include "runtime/workflow/lease/ask.hpp"

#include <algorithm>

#include "runtime/core/base/time.hpp"
#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/lease/terms.hpp"
#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/catalogue/rank.hpp"
#include "runtime/workflow/provider/nearest.hpp"

namespace rille::lease {

namespace {

// The time limits are long because a cloud's first answer takes many sequential calls: an answer after seconds is
// normal.
constexpr std::int64_t whole_ms = 30'000, straggler_ms = 10'000, straggler_times = 4;

Error late(std::int64_t ms) {
  return make_error(ErrorKind::timeout, "no answer within " + format_duration_ms(ms),
                    "other providers had answered by then. Name this provider, or pass timeout = \"30s\" (rille offers "
                    "--timeout 30s), to wait longer");
}

// One query to several providers, and the providers that have not answered yet.
struct Question : std::enable_shared_from_this<Question> {
  Question(Loop& l, provider::OfferQuery q, std::int64_t ms) : loop(l), query(std::move(q)), limit_ms(ms) {}
  Loop& loop;
  provider::OfferQuery query;
  std::int64_t limit_ms;
  bool hurries = false;  // true: once one provider has offers, the others get a shorter limit
  std::int64_t began_ns = loop.clock().monotonic_ns();
  std::vector<std::shared_ptr<CancelSource>> waiting;
  std::unique_ptr<Timer> timer;

  // One provider has offers: the others get a shorter limit, counted from the start.
  void hurry() {
    if (!hurries || timer) return;
    const std::int64_t passed_ms = (loop.clock().monotonic_ns() - began_ns) / 1'000'000;
    const std::int64_t ms = std::max(straggler_ms, straggler_times * passed_ms);
    if (ms >= limit_ms) return;
    const std::weak_ptr<Question> weak = weak_from_this();
    timer = std::make_unique<Timer>(loop, ms - passed_ms, [weak, ms] {
      const std::shared_ptr<Question> self = weak.lock();  // keep it alive until all are cancelled
      if (!self) return;
      const auto behind = self->waiting;
      for (const auto& source : behind) source->cancel(late(ms));
    });
  }
};

Async<std::vector<provider::Offer>> ask_one(std::shared_ptr<Question> question, provider::Provider* provider,
                                            std::shared_ptr<provider::LeftOut> left_out, CancelToken token) {
  const auto source = std::make_shared<CancelSource>(token);
  question->waiting.push_back(source);
  provider::OfferQuery query = question->query;
  query.left_out = std::move(left_out);
  // The time limit for one region is shorter than for the whole query, so that a silent region does not end the query.
  query.patience_ms = question->limit_ms - question->limit_ms / 10;
  Result<std::vector<provider::Offer>> found = co_await provider->offers(std::move(query), source->token());
  std::erase(question->waiting, source);
  if (!found) co_return found;
  for (provider::Offer& o : *found) provider::complete(o);
  std::erase_if(*found, [&](const provider::Offer& o) { return !o.matches(question->query); });
  if (!found->empty() && !provider::is_own_cpu(provider->name())) question->hurry();
  co_return found;
}

Value failed_row(const std::string& provider, const Error& e) {
  Value out;
  return out.set("provider", provider).set("error", e.message).set("kind", to_string(e.kind)).set("hint", e.hint);
}

}  // namespace

// Asks all providers concurrently, so that a slow or failing provider does not delay the others. Offers of the local
// machine's CPU do not shorten the time limit of the clouds.
Async<std::vector<ProviderQueries::Asked>> ask_providers(Loop& loop, provider::Registry& registry,
                                                         provider::OfferQuery query, Patience patience,
                                                         CancelToken token) {
  for (const std::string& name : query.providers) RILLE_CO_CHECK(registry.find(name));
  const auto question =
      std::make_shared<Question>(loop, query, patience.timeout_ms > 0 ? patience.timeout_ms : whole_ms);
  question->hurries = patience.timeout_ms <= 0 && (query.providers.empty() || !patience.named);
  if (patience.others_have_some) question->hurry();
  std::vector<Together<std::vector<provider::Offer>>> all;
  std::vector<ProviderQueries::Asked> out;
  std::vector<std::shared_ptr<provider::LeftOut>> left_out;
  for (provider::Provider* p : registry.all()) {
    if (!query.accepts_provider(p->name())) continue;
    out.push_back({p->name(), std::vector<provider::Offer>(), {}});
    all.push_back({"asking '" + p->name() + "' for offers",
                   [p, question, left = left_out.emplace_back(std::make_shared<provider::LeftOut>())](CancelToken t) {
                     return ask_one(question, p, left, std::move(t));
                   }});
  }
  auto answers = co_await together(loop, std::move(all), question->limit_ms, token);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].offers = std::move(answers[i]);
    if (out[i].offers) out[i].left_out = std::move(*left_out[i]);
  }
  co_return out;
}

Async<std::vector<ProviderQueries::Asked>> ProviderQueries::ask(provider::OfferQuery query, CancelToken token) {
  return ask_providers(loop_, registry_, std::move(query), {}, std::move(token));
}

Async<Value> ProviderQueries::offers(Value query, CancelToken token) {
  Patience patience;
  RILLE_CO_TRY(patience.timeout_ms, take_timeout(query));
  RILLE_CO_TRY(Terms terms, terms_of(query, "offers"));
  std::vector<provider::Offer> found;
  Value::Array rest, all;
  RILLE_CO_TRY(const std::vector<Asked> answers,
               co_await ask_providers(loop_, registry_, terms.query, patience, token));
  for (const Asked& asked : answers) {
    if (!asked.offers) {
      rest.push_back(failed_row(asked.provider, asked.offers.error()));
      continue;
    }
    found.insert(found.end(), asked.offers->begin(), asked.offers->end());
    for (const provider::AskedRegion& region : asked.left_out.unasked)
      rest.push_back(failed_row(asked.provider, *region.problem).set("region", region.region));
    if (const std::int64_t n = asked.left_out.unpriced)
      rest.push_back(
          Value().set("provider", asked.provider).set("unpriced", n).set("note", provider::unpriced_note(n)));
  }
  provider::sort_by_rank(found, terms.query);
  for (const provider::Offer& o : found) all.push_back(provider::ranked_view(o, terms.query));
  all.insert(all.end(), rest.begin(), rest.end());
  co_return Value(std::move(all));
}

Async<std::string> ProviderQueries::offers_hint(Value query, CancelToken token) {
  RILLE_CO_CHECK(take_timeout(query));
  RILLE_CO_TRY(Terms terms, terms_of(query, "offers"));
  const std::vector<provider::Offer> others = co_await elsewhere(terms.query, std::move(token));
  co_return provider::nearest_hint(terms.query, others, provider::Asker::offers);
}

Result<Terms> ProviderQueries::terms_of(const Value& options, const char* asker) const {
  RILLE_TRY(Terms terms, read_terms(options, asker));
  terms.query.rates.insert(rates_.begin(), rates_.end());  // adds only rates that the query does not give
  terms.disk_prices = disk_prices_;
  return terms;
}

Result<ProviderQueries::Wish> ProviderQueries::wish_of(const Value& options) {
  std::string text = options.to_json();
  if (!last_ || last_options_ != text) {
    RILLE_TRY(Terms terms, terms_of(options));
    last_ = std::make_shared<const Terms>(std::move(terms));
    last_options_ = std::move(text);
  }
  return last_;
}

Task<std::vector<provider::Offer>> ProviderQueries::elsewhere(provider::OfferQuery query, CancelToken token) {
  std::vector<provider::Offer> out;
  std::optional<provider::OfferQuery> loose = provider::loosened(query);
  if (!loose || !provider::gpu_hint(query, provider::Asker::rent).empty()) co_return out;
  const Result<std::vector<Asked>> answers = co_await ask(std::move(*loose), token);
  if (!answers) co_return out;
  for (const Asked& asked : *answers)
    if (asked.offers) out.insert(out.end(), asked.offers->begin(), asked.offers->end());
  co_return out;
}

}  // namespace rille::lease
