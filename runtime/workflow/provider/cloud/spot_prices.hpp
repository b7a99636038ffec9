// SpotPrices: what spot machines of a type and place cost, asked for once in a while for all of them. Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/account.hpp"

namespace rille::provider::cloud {

class SpotPrices {
 public:
  // Points of one type and place; one without an instant is the price of now.
  using Ask = std::function<Async<std::vector<PricePoint>>(std::int64_t since_us, CancelToken token)>;
  explicit SpotPrices(Loop& loop) : loop_(loop) {}

  // `key`: which type and place. What was told within lasts_us is told again. Points without an instant bear that of
  // the question that gave them, and stand one after the other. A question that fails leaves what was known.
  Async<std::vector<PricePoint>> get(std::string key, std::int64_t since_us, std::int64_t lasts_us, Ask ask,
                                     CancelToken token);

 private:
  struct Known {
    std::int64_t until_us = 0, since_us = 0;  // how long it serves, and how far back it goes
    std::vector<PricePoint> points;
    bool asking = false;
    std::vector<Future<bool>> waiting;
  };
  static void learn(Known& known, std::vector<PricePoint> told, std::int64_t now_us);

  Loop& loop_;
  std::map<std::string, Known> known_;
};

}  // namespace rille::provider::cloud
