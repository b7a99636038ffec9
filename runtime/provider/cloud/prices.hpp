// What types cost, for clouds where the price of each is a call: asked for a few at once, and kept for a while.
// Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/loop/loop.hpp"
#include "runtime/provider/types.hpp"

namespace rille::provider::cloud {

struct Price {
  Micros micros_per_hour = price_unknown;
  std::string currency;
};

// Those of one region's types that fit in all but the price, and not more than `most`. No price is known yet, so no
// kind may crowd out another: of each GPU and number of GPUs the smallest type, then of each the next one. Every GPU
// has its turn before those types without one, and before larger numbers of the same.
std::vector<Offer> smallest_fitting(const std::vector<Offer>& types, OfferQuery query, std::size_t most);

class PriceBook {
 public:
  using Ask = std::function<Async<Price>(std::string type, bool spot, CancelToken token)>;
  PriceBook(Loop& loop, Ask ask) : loop_(loop), ask_(std::move(ask)) {}

  // The same offers with their prices. One whose price cannot be had is not sold so, and is left out; where that is
  // true of all: why.
  Async<std::vector<Offer>> priced(std::vector<Offer> offers, bool spot, CancelToken token);

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
