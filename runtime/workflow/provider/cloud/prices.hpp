// Prices of machine types on clouds that need one call per price: requested in batches, and cached. Loop thread only.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/provider/amounts.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::cloud {

struct Price {
  Micros micros_per_hour = price_unknown;
  std::string currency;
  // hourly prices with a commitment of one or three years
  Micros reserved_1y = price_unknown, reserved_3y = price_unknown;
};

constexpr std::int64_t year_hours = 8'760;
// price_unknown for 0, which is no real price.
inline Micros micros_of(double amount) { return amounts::price(amount); }
// The hourly price, from the total price for that many years.
inline Micros hourly_of(double total, int years) { return micros_of(total / static_cast<double>(year_hours * years)); }

// The amount as text with three decimals, rounded up: a price limit rounded down would be below the offer's price.
std::string price_text(Micros micros);

// More than any cloud's number of supported GPU types, so that only types without a GPU are left out.
constexpr std::size_t types_priced_max = 100;

// Selects at most `most` of one region's types that match the query except for the price; query.left_out counts the
// matching types that were not selected. Since no price is known yet, the selection is balanced: first the smallest
// type of each GPU model and count, then the second smallest of each. Every GPU model comes before types without a GPU
// and before larger counts of the same model.
std::vector<Offer> smallest_fitting(const std::vector<Offer>& types, OfferQuery query,
                                    std::size_t most = types_priced_max);

// Runs together() on batches of 20 calls, since services limit calls per second. Each batch may take `patience_ms`.
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

  // The offers with their prices, on demand or spot. Offers without a price are dropped, and query.left_out gets the
  // reason under the region's name; if no offer has a price, the reason is the error.
  Async<std::vector<Offer>> priced(std::vector<Offer> offers, OfferQuery query, std::string region, CancelToken token);

 private:
  struct Known {
    std::int64_t at_us = 0;
    Price price;
  };

  Loop& loop_;
  Ask ask_;
  std::map<std::pair<std::string, bool>, Known> known_;  // key: type, and whether spot
};

}  // namespace rille::provider::cloud
