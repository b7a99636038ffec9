#include "runtime/workflow/provider/cloud/spot_prices.hpp"

#include <catch2/catch.hpp>

using namespace rille;
using namespace rille::provider;

namespace {

constexpr std::int64_t one_minute_us = 60'000'000;

struct FakeClock final : Clock {
  std::int64_t us = 1'800'000'000'000'000;
  std::int64_t wall_us() const override { return us; }
  std::int64_t monotonic_ns() const override { return us * 1000; }
};

struct Market {
  FakeClock clock;
  std::unique_ptr<Loop> loop = Loop::create(clock).value();
  cloud::SpotPrices prices{*loop};
  int asked = 0;
  bool fails = false;
  std::int64_t since_us = 0;  // of the last question
  std::vector<PricePoint> says;

  Async<std::vector<PricePoint>> answer(std::int64_t from_us, CancelToken token) {
    ++asked;
    since_us = from_us;
    RILLE_CO_CHECK(co_await sleep_for(*loop, 5, token));
    if (fails) co_return make_error(ErrorKind::network, "no answer");
    co_return says;
  }
  Async<std::vector<PricePoint>> get(std::int64_t from_us, CancelToken token = {}) {
    cloud::SpotPrices::Ask ask = [this](std::int64_t us, CancelToken t) { return answer(us, std::move(t)); };
    return prices.get("a1 b", from_us, 5 * one_minute_us, std::move(ask), std::move(token));
  }
  void now_costs(Micros micros) {
    PricePoint point;
    point.micros_per_hour = micros;
    says = {point};
  }
};

}  // namespace

TEST_CASE_METHOD(Market, "spot prices: one request serves a thousand simultaneous calls") {
  now_costs(7);
  int told = 0;
  const auto one = [this, &told]() -> Task<void> {
    const auto answer = co_await get(clock.us);
    told += answer && answer->size() == 1 && answer->front().micros_per_hour == 7;
  };
  for (int i = 0; i < 1000; ++i) loop->spawn(one());
  loop->run_until([&told] { return told == 1000; });
  CHECK(asked == 1);
}

TEST_CASE_METHOD(Market, "spot prices: an answer serves for a while, and a longer past is asked for") {
  now_costs(7);
  REQUIRE(run_blocking(*loop, get(1000)));
  clock.us += 4 * one_minute_us;
  REQUIRE(run_blocking(*loop, get(2000)));
  CHECK(asked == 1);
  REQUIRE(run_blocking(*loop, get(500)));
  CHECK(asked == 2);
  REQUIRE(run_blocking(*loop, get(1000)));
  CHECK(asked == 2);
  clock.us += 6 * one_minute_us;
  REQUIRE(run_blocking(*loop, get(1000)));
  CHECK(asked == 3);
  CHECK(since_us == 500);
}

TEST_CASE_METHOD(Market, "spot prices: a price without a time counts from the request that returned it") {
  now_costs(7);
  const std::int64_t first = clock.us;
  REQUIRE(run_blocking(*loop, get(1000)));
  clock.us += 6 * one_minute_us;
  REQUIRE(run_blocking(*loop, get(1000)));
  clock.us += 6 * one_minute_us;
  now_costs(9);
  const auto all = run_blocking(*loop, get(1000));
  REQUIRE(all);
  REQUIRE(all->size() == 2);
  CHECK(all->at(0).from_wall_us == first);
  CHECK(all->at(1).from_wall_us == clock.us);
  CHECK(all->at(1).micros_per_hour == 9);
}

TEST_CASE_METHOD(Market, "spot prices: a failure leaves what was known, and is not met again at once") {
  fails = true;
  CHECK_FALSE(run_blocking(*loop, get(1000)));
  (void)run_blocking(*loop, get(1000));
  CHECK(asked == 1);
  clock.us += 2 * one_minute_us;
  fails = false;
  now_costs(7);
  REQUIRE(run_blocking(*loop, get(1000)));
  CHECK(asked == 2);
  clock.us += 6 * one_minute_us;
  fails = true;
  const auto kept = run_blocking(*loop, get(1000));
  REQUIRE(kept);
  CHECK(kept->size() == 1);
  CHECK(asked == 3);
}

TEST_CASE_METHOD(Market, "spot prices: one that is cancelled leaves the question to the next") {
  now_costs(7);
  CancelSource stop;
  loop->post([&stop] { stop.cancel(make_error(ErrorKind::cancelled, "enough")); });
  CHECK_FALSE(run_blocking(*loop, get(1000, stop.token())));
  CHECK(run_blocking(*loop, get(1000)));
  CHECK(asked == 2);
}
