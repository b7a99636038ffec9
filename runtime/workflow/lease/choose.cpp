// Lists the offers for a rent and chooses one of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <tuple>

#include "runtime/core/base/units.hpp"
#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/lease/owner.hpp"
#include "runtime/workflow/lease/refused.hpp"
#include "runtime/workflow/provider/catalogue/rank.hpp"
#include "runtime/workflow/provider/nearest.hpp"
#include "runtime/workflow/provider/usual_disk.hpp"

namespace rille::lease {

namespace {
constexpr int offers_attempts_max = 4;
constexpr std::int64_t list_lasts_us = 60'000'000;  // during one rent, a list of offers is reused for this long
constexpr std::size_t woken_at_once = 64;

// Wakes the waiting rents, a few per turn of the loop, so that the first rents send their create calls while others
// choose.
void wake(Loop& loop, std::shared_ptr<const std::vector<Future<bool>>> waiting, std::size_t from) {
  const std::size_t to = std::min(from + woken_at_once, waiting->size());
  for (std::size_t i = from; i < to; ++i) (*waiting)[i].set(true);
  if (to == waiting->size()) return;
  loop.post([&loop, waiting = std::move(waiting), to] { wake(loop, waiting, to); });
}

using Answers = std::optional<Result<std::vector<ProviderQueries::Asked>>>;

Async<bool> ask_into(ProviderQueries& queries, provider::OfferQuery query, std::shared_ptr<Answers> out,
                     CancelToken token) {
  out->emplace(co_await queries.ask(std::move(query), std::move(token)));
  co_return true;
}

// Queries offers and account owners concurrently, so that neither delays the other.
Async<std::vector<ProviderQueries::Asked>> ask_with_owners(Loop& loop, ProviderQueries& queries,
                                                           provider::Registry& registry, provider::OfferQuery query,
                                                           std::shared_ptr<Owners> owners, CancelToken token) {
  std::vector<provider::Provider*> all;
  for (provider::Provider* p : registry.all())
    if (query.accepts_provider(p->name())) all.push_back(p);
  const auto answers = std::make_shared<Answers>();
  std::vector<Together<bool>> both;
  both.push_back({"offers", [&queries, query, answers](CancelToken t) {
                    return ask_into(queries, query, answers, std::move(t));
                  }});
  both.push_back(
      {"owners", [&loop, all, owners](CancelToken t) { return learn_owners(loop, all, owners, std::move(t)); }});
  (void)co_await together(loop, std::move(both), 0, std::move(token));
  co_return std::move(**answers);
}
}  // namespace

// Returns the offers for a rent. Rents with an equal query at the same time share one query, because providers limit
// the request rate and each answer takes time.
Async<Manager::Offers> Manager::list(const Wish& wish, CancelToken token) {
  for (;;) {
    const auto under_way = search_->asking.find(wish->asks);
    if (under_way == search_->asking.end()) break;
    const std::shared_ptr<Search::Asking> asking = under_way->second;
    Future<bool> over(loop_);
    asking->waiting.push_back(over);
    const auto registration = token.on_cancel([over](const Error&) { over.set(true); });
    co_await over;
    if (token.cancelled()) co_return token.reason();
    if (asking->answer) co_return *asking->answer;
  }
  // However this coroutine ends, the rents that wait for it continue: with its answer, or one of them asks again.
  struct Over {
    Over(Loop& l, std::shared_ptr<Search> s, const std::string& a)
        : loop(l), search(std::move(s)), asks(a), asking(std::make_shared<Search::Asking>()) {
      search->asking[asks] = asking;
    }
    Over(const Over&) = delete;
    ~Over() {
      search->asking.erase(asks);
      wake(loop, std::make_shared<const std::vector<Future<bool>>>(std::move(asking->waiting)), 0);
    }
    Loop& loop;
    std::shared_ptr<Search> search;
    std::string asks;
    std::shared_ptr<Search::Asking> asking;
  };
  Over mine(loop_, search_, wish->asks);
  Result<std::vector<provider::Offer>> found = co_await ask_until_answered(*wish, token);
  std::optional<Result<Offers>> out;
  if (found) out.emplace(std::make_shared<const std::vector<provider::Offer>>(std::move(*found)));
  else out.emplace(found.error());
  if (found || !token.cancelled()) mine.asking->answer = out;
  co_return std::move(*out);
}

// Asks the providers for offers. If a provider fails temporarily, asks again, unless another provider has offers.
Async<std::vector<provider::Offer>> Manager::ask_until_answered(const Terms& terms, CancelToken token) {
  for (int attempt = 1;; ++attempt) {
    std::optional<Error> failure;
    std::vector<provider::Offer> found;
    RILLE_CO_TRY(std::vector<ProviderQueries::Asked> answers,
                 co_await ask_with_owners(loop_, queries_, registry_, terms.query, search_->owners, token));
    for (ProviderQueries::Asked& asked : answers) {
      if (!asked.offers) failure = asked.offers.error();
      else if (found.empty()) found = std::move(*asked.offers);
      else std::move(asked.offers->begin(), asked.offers->end(), std::back_inserter(found));
    }
    if (!found.empty() || !failure) co_return found;
    if (!failure->retryable || attempt == offers_attempts_max) co_return *failure;
    std::int64_t ms = std::clamp<std::int64_t>(failure->retry_after_ms, 500LL << attempt, 30'000);
    RILLE_CO_CHECK(co_await pause(ms, token));
  }
}

// The best available offer by the requested rank; null: none. Regions without stock come last, and so do offers of
// unknown price. An offer of more than twice the price of the best one before any refusal is skipped unless max_price
// is set: on some clouds the next larger machine with the same GPU costs fifteen times as much.
const provider::Offer* Manager::best_of(const Terms& terms, Refused& refused, const char*& obstacle) const {
  const provider::Provider* provider = nullptr;
  Micros disk = 0;  // disk price of the offer that can_be() examined last
  const auto can_be = [&](const provider::Offer& o) {
    if (!provider || provider->name() != o.provider) {
      Result<provider::Provider*> found = registry_.find(o.provider);
      if (!found) return false;
      provider = *found;
    }
    disk = terms.disk_of(o, provider::usual_disk_bytes(provider, o));
    const char* why = terms.obstacle(o, provider->traits(), disk);
    if (why) obstacle = why;
    return !why;
  };
  const bool by_price = terms.query.rank == provider::Rank::price;
  const bool bounded = !terms.query.max_price_micros_per_hour;
  if (bounded && by_price && refused.first_micros == 0)
    for (const provider::Offer& o : *refused.listed) {
      const Micros price = terms.price_of(o);
      if (price < 0 || !can_be(o)) continue;
      if (price == 0) {
        refused.first_micros = 0;
        break;
      }  // a free offer sets no price limit: a query that allows free offers may also mean paid ones
      if (refused.first_micros == 0 || price < refused.first_micros) refused.first_micros = price;
    }
  const std::int64_t now = now_us();
  const auto rank = [&](const provider::Offer& o) {
    const Micros price = terms.price_of(o);
    const Micros with_disk = price < 0 ? provider::price_unknown : price + std::max<Micros>(disk, 0);
    provider::GpuWorth worth;
    if (!by_price) worth = provider::gpu_worth(terms.query, o.gpu, o.gpu_memory_bytes);
    return std::tuple(Refused::has(refused.last, o.provider, o.id), Refused::has(refused.regions, o.provider, o.region),
                      recent_->has(o, now), provider::merit(terms.query.rank, with_disk, o.gpu_count, worth),
                      with_disk < 0, with_disk, disk < 0);
  };
  const provider::Offer* best = nullptr;
  std::optional<decltype(rank(*best))> least;
  refused.dearer = nullptr;
  for (const provider::Offer& o : *refused.listed) {
    if (!can_be(o) || refused.covers(o)) continue;
    const Micros price = terms.price_of(o);
    if (bounded && refused.first_micros > 0 && price > jump_at * refused.first_micros) {
      if (!refused.dearer || price < terms.price_of(*refused.dearer)) refused.dearer = &o;
      continue;
    }
    auto r = rank(o);
    if (!least || r < *least) least = r, best = &o;
  }
  if (best && bounded && refused.first_micros == 0) refused.first_micros = std::max<Micros>(0, terms.price_of(*best));
  return best;
}

Error Manager::only_dearer(const Terms& terms, const Refused& refused) const {
  const Micros price = terms.price_of(*refused.dearer);
  Error e =
      make_error(ErrorKind::capacity,
                 fmt::format("the remaining offers cost more than twice as much as {} an hour",
                             format_dollars(refused.first_micros)),
                 fmt::format("{} of {} at {} an hour ({} {}) is left: max_price = {:.2f} takes it", refused.dearer->id,
                             refused.dearer->provider, format_dollars(price), refused.dearer->gpu_count,
                             refused.dearer->gpu, std::ceil(static_cast<double>(price) / 1e4) / 100));
  e.code = price_jump;
  return e;
}

Async<const provider::Offer*> Manager::choose(const Wish& wish, Refused& refused, CancelToken token) {
  const Terms& terms = *wish;
  const bool old = !refused.listed || now_us() - refused.listed_us > list_lasts_us || now_us() < refused.listed_us;
  const char* obstacle = nullptr;
  const provider::Offer* best = old ? nullptr : best_of(terms, refused, obstacle);
  if (!best) {
    RILLE_CO_TRY(refused.listed, co_await list(wish, token));
    refused.listed_us = now_us();
    Search::First& first = search_->first;
    const bool plain = !refused.any() && recent_->until_us.empty();
    if (plain && first.wish == wish && first.listed == refused.listed) {
      refused.first_micros = first.micros;
      co_return first.best;
    }
    obstacle = nullptr;
    best = best_of(terms, refused, obstacle);
    if (plain && best) first = {wish, refused.listed, best, refused.first_micros};
  }
  if (best) co_return best;
  if (refused.dearer) co_return only_dearer(terms, refused);
  std::vector<provider::Offer> others;
  if (refused.listed->empty()) others = co_await queries_.elsewhere(terms.query, token);
  co_return nothing_to_rent(terms, !refused.listed->empty() && !obstacle, obstacle, others);
}

}  // namespace rille::lease
