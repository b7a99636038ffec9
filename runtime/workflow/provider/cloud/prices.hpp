// What types cost, for clouds where the price of each is a call: asked for a few at once, and kept for a while.
// Loop thread only.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::cloud {

struct Price {
  Micros micros_per_hour = price_unknown;
  std::string currency;
  Micros reserved_1y = price_unknown, reserved_3y = price_unknown;  // of an hour, by who is bound for so many years
};

constexpr std::int64_t year_hours = 8'760;
// price_unknown: nothing, which no machine costs.
inline Micros micros_of(double amount) {
  return amount > 0 ? static_cast<Micros>(std::llround(amount * 1e6)) : price_unknown;
}
// Of an hour, of what costs so much for so many years.
inline Micros hourly_of(double total, int years) { return micros_of(total / static_cast<double>(year_hours * years)); }

// Three decimals, upwards: a cap that was rounded down would be below the price it came from.
std::string price_text(Micros micros);

// More than any cloud has types with GPUs that Rille runs on: what is left out of an answer are types without one.
constexpr std::size_t types_priced_max = 100;

// Those of one region's types that fit in all but the price, not more than `most`; query.left_out counts the others. No
// price is known yet, so no kind may crowd out another: of each GPU and number of GPUs the smallest type, then of each
// the next one. Every GPU has its turn before those types without one, and before larger numbers of the same.
std::vector<Offer> smallest_fitting(const std::vector<Offer>& types, OfferQuery query,
                                    std::size_t most = types_priced_max);

// together(), a few at a time: services count the calls of a second. `patience_ms` is that of each few.
template <class T>
Task<std::vector<Result<T>>> in_batches(Loop& loop, std::vector<Together<T>> all, std::int64_t patience_ms,
                                        CancelToken token) {
  constexpr std::size_t at_once = 20;
  std::vector<Result<T>> out;
  for (std::size_t from = 0; from < all.size(); from += at_once) {
    std::vector<Together<T>> few;
    for (std::size_t i = from; i < all.size() && i < from + at_once; ++i) few.push_back(std::move(all[i]));
    std::vector<Result<T>> answers = co_await together(loop, std::move(few), patience_ms, token);
    for (Result<T>& answer : answers) out.push_back(std::move(answer));
  }
  co_return out;
}

class PriceBook {
 public:
  using Ask = std::function<Async<Price>(std::string type, bool spot, CancelToken token)>;
  PriceBook(Loop& loop, Ask ask) : loop_(loop), ask_(std::move(ask)) {}

  // The same offers with their prices, on demand or spot. Those whose price cannot be had are left out, and
  // query.left_out says why under the region's name; where that is true of all it is the error.
  Async<std::vector<Offer>> priced(std::vector<Offer> offers, OfferQuery query, std::string region, CancelToken token);

 private:
  struct Known {
    std::int64_t at_us = 0;
    Price price;
  };

  Loop& loop_;
  Ask ask_;
  std::map<std::pair<std::string, bool>, Known> known_;  // by type and spot
};

}  // namespace rille::provider::cloud
