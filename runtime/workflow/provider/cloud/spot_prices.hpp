// SpotPrices: a cache of spot prices, shared by all machines of one type and place. Loop thread only.
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
  // Requests the price points of one type and place; a point with from_wall_us 0 is the current price.
  using Ask = std::function<Async<std::vector<PricePoint>>(std::int64_t since_us, CancelToken token)>;
  explicit SpotPrices(Loop& loop) : loop_(loop) {}

  // `key`: type and place. An answer is reused for lasts_us. A point with from_wall_us 0 gets the time of the request
  // and is appended to the known points. If a request fails, the known points are returned.
  Async<std::vector<PricePoint>> get(std::string key, std::int64_t since_us, std::int64_t lasts_us, Ask ask,
                                     CancelToken token);

 private:
  struct Known {
    std::int64_t until_us = 0, since_us = 0;  // the answer is reused until until_us; prices are known from since_us
    std::vector<PricePoint> points;
    bool asking = false;
    std::vector<Future<bool>> waiting;
  };
  static void learn(Known& known, std::vector<PricePoint> told, std::int64_t now_us);

  Loop& loop_;
  std::map<std::string, Known> known_;
};

}  // namespace rille::provider::cloud
