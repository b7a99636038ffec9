// What reserved hours cost: the fakes sell a year for 0.6 of the price on demand, three for 0.4 (world.py).
#include <cmath>

#include "tests/contract/fake.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

void check_share(Micros price, double share, const Offer& o) {
  INFO(o.to_value().to_json());
  const double wanted = static_cast<double>(o.price_micros_per_hour) * share;
  CHECK(std::abs(static_cast<double>(price) - wanted) <= wanted / 1000 + 2);
}

// Where each price is a call, they are asked for only if the settings say so.
bool asks_for_each() { return fake_name() == "alibaba" || fake_name() == "huawei"; }

}  // namespace

TEST_CASE_METHOD(Fake, "reserved hours: what a year and three cost, where the provider says so") {
  if (asks_for_each()) {
    for (const Offer& o : offers("any")) CHECK(o.reserved_1y_micros_per_hour == price_unknown);
    Value settings = told["settings"];
    settings.set("reserved_prices", true);
    told.set("settings", std::move(settings));
    provider = make();
  }
  std::size_t of_a_year = 0, of_three = 0;
  for (const Offer& o : offers("any")) {
    const Offer again = Offer::from_value(o.to_value()).value();
    CHECK(again.reserved_1y_micros_per_hour == o.reserved_1y_micros_per_hour);
    CHECK(again.reserved_3y_micros_per_hour == o.reserved_3y_micros_per_hour);
    CHECK(o.view()["reserved_1y_micros_per_hour"].is_null());
    if (o.reserved_1y_micros_per_hour != price_unknown) {
      ++of_a_year;
      check_share(o.reserved_1y_micros_per_hour, 0.6, o);
      CHECK(o.view().number("reserved_1y_price_per_hour") ==
            Approx(static_cast<double>(o.reserved_1y_micros_per_hour) / 1e6));
    }
    if (o.reserved_3y_micros_per_hour != price_unknown) {
      ++of_three;
      check_share(o.reserved_3y_micros_per_hour, 0.4, o);
    }
  }
  REQUIRE((of_a_year > 0) == has().reserved);
  CHECK(of_three == of_a_year);
  if (!has().spot) return;
  for (const Offer& o : offers("any", true)) CHECK(o.reserved_1y_micros_per_hour == price_unknown);
}

TEST_CASE_METHOD(Fake, "reserved hours: a price that cannot be had does not hide the other") {
  if (!asks_for_each()) return;
  Value settings = told["settings"];
  settings.set("reserved_prices", true);
  told.set("settings", std::move(settings));
  provider = make();
  const bool alibaba = fake_name() == "alibaba";
  fault("refuse", alibaba ? "DescribePrice" : "rateYears", 1000,
        Value().set("where", alibaba ? "PriceUnit=Year" : "period_num"));
  const std::vector<Offer> all = offers("any");
  REQUIRE_FALSE(all.empty());
  for (const Offer& o : all) {
    CHECK(o.price_micros_per_hour > 0);
    CHECK(o.reserved_1y_micros_per_hour == price_unknown);
  }
}
