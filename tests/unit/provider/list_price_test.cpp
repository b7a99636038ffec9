#include "runtime/workflow/provider/catalogue/list_price.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "runtime/workflow/provider/gpu_facts.hpp"
#include "runtime/workflow/provider/providers.hpp"
#include "runtime/workflow/provider/sim/cloud.hpp"
#include "runtime/workflow/provider/sim/listed.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

OfferQuery query_for(const std::string& gpu) {
  Value v;
  v.set("gpu", gpu);
  return OfferQuery::from_value(v).value();
}

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '-' || (c >= '0' && c <= '9'); });
}

}  // namespace

TEST_CASE("each list price names a provider, a GPU with facts, a sum, a date and a source") {
  const std::vector<std::string>& providers = provider_names();
  std::set<std::string> seen;
  for (const ListPrice& row : list_prices()) {
    const std::string key = std::string(row.provider) + "|" + std::string(row.type) + "|" + std::string(row.region) +
                            "|" + std::string(row.gpu) + "|" + std::to_string(row.gpu_count) + "|" +
                            std::string(to_string(row.kind));
    INFO(key);
    CHECK(seen.insert(key).second);
    CHECK(std::find(providers.begin(), providers.end(), row.provider) != providers.end());
    CHECK(gpu_facts(row.gpu) != nullptr);
    CHECK((row.gpu_count >= 1 && row.gpu_count <= 16));
    CHECK((row.dollars > 0.05 && row.dollars < 30.0 * row.gpu_count));
    CHECK(is_date(row.date));
    CHECK_FALSE(row.source.empty());
  }
  CHECK(seen.size() > 200);
}

TEST_CASE("a machine that is listed is listed once, and a commitment costs less than its on-demand price") {
  std::set<std::string> seen;
  for (const ListedMachine& machine : listed_machines(OfferQuery())) {
    const ListPrice& row = machine.any();
    INFO(row.provider << " " << row.type << " " << row.region << " " << row.gpu);
    CHECK(seen.insert(std::string(row.provider) + row.type.data() + "|" + row.region.data() + row.gpu.data()).second);
    const Micros full = machine.micros(PriceKind::on_demand);
    for (const PriceKind kind : {PriceKind::spot, PriceKind::reserved_1y, PriceKind::reserved_3y})
      CHECK(machine.micros(kind) < full);
  }
}

TEST_CASE("listed machines satisfy the query and come best first") {
  OfferQuery q = query_for("H100:8");
  const std::vector<ListedMachine> found = listed_machines(q);
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().any().provider == "lambda");
  CHECK(found.front().micros(PriceKind::on_demand) == 31'920'000);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].any().gpu_count == 8);
    if (i) CHECK(found[i - 1].micros(PriceKind::on_demand) <= found[i].micros(PriceKind::on_demand));
  }
  q.max_price_micros_per_hour = 30'000'000;
  CHECK(listed_machines(q).empty());
  q = query_for("H100:8");
  q.providers = {"azure"};
  for (const ListedMachine& machine : listed_machines(q)) CHECK(machine.any().provider == "azure");
  CHECK(listed_machines(query_for("cpu")).empty());
  q.vcpus = 2;
  CHECK(listed_machines(q).empty());
}

TEST_CASE("a spot query takes the machines with a spot price, by that price") {
  OfferQuery q = query_for("H100:8");
  q.spot = true;
  const std::vector<ListedMachine> found = listed_machines(q);
  REQUIRE_FALSE(found.empty());
  for (const ListedMachine& machine : found) CHECK(machine.price(PriceKind::spot) != nullptr);
  q.max_price_micros_per_hour = found.front().micros(PriceKind::spot);
  CHECK(listed_machines(q).front().any().type == found.front().any().type);
}

TEST_CASE("a price of all regions is one of the region asked for") {
  OfferQuery q = query_for("H100");
  q.providers = {"lambda"};
  q.region = "us-east-1";
  CHECK_FALSE(listed_machines(q).empty());
  q.providers = {"gcp"};
  CHECK(listed_machines(q).empty());
}

TEST_CASE("the view names the prices' dates and sources") {
  OfferQuery q = query_for("A100-40GB:1");
  q.providers = {"gcp"};
  const Value view = listed_machines(q).front().view();
  CHECK(view.text("id") == "a2-highgpu-1g");
  CHECK(view.number("price_per_hour") == 3.6734);
  CHECK(view.number("reserved_3y_price_per_hour") == 1.285708);
  CHECK(view.text("list_price_of") == "2025-03-06 to 2026-10-10");
  CHECK(view["list_prices"]["reserved_3y"].text("date") == "2025-03-06");
  CHECK_FALSE(view["list_prices"]["spot"].text("source").empty());
}

TEST_CASE("the list price of an offer is that of its type, region and way of paying") {
  Offer offer;
  offer.provider = "aws";
  offer.id = "us-east-1/p5.48xlarge";
  offer.region = "us-east-1";
  offer.price_micros_per_hour = price_unknown;
  REQUIRE(list_price_of(offer) != nullptr);
  CHECK(list_price_of(offer)->dollars == 55.04);
  CHECK(list_price_words(list_price_of(offer)->date) == "list price of 2026-10-10");
  CHECK(offer.price_micros_per_hour == price_unknown);
  offer.id = "moon-1/p5.48xlarge";
  offer.region = "moon-1";
  CHECK(list_price_of(offer) == nullptr);
  offer.id = "us-east-1/p5.48xlarge:spot";
  offer.region = "us-east-1";
  offer.spot = true;
  CHECK(list_price_of(offer) == nullptr);
}

TEST_CASE("the simulated cloud has list prices only where it is told to") {
  const auto& listed = sim::listed_types();
  REQUIRE(listed.contains("h100x8"));
  CHECK(listed.at("h100x8").on_demand->dollars == 31.92);
  CHECK_FALSE(listed.contains("cpu-4"));
  CHECK(listed.at("h100x8").spot->provider == std::string("azure"));  // lambda has no spot machines
  CHECK(listed.at("h100x8").spot_share == Approx(18.1695 / 31.92));
  CHECK(sim::price_words(listed.at("h100x8")) ==
        "lambda's list price of 2026-10-10, on spot azure's list price of 2026-10-10, 57 % of it");
  const sim::Options plain = sim::Options::calm(1), priced = sim::with_list_prices(plain);
  CHECK(plain.prices.empty());
  for (const auto& [type, price] : priced.prices) {
    INFO(type);
    CHECK(listed.contains(type));
    CHECK((price.dollars > 0 && price.spot_share > 0 && price.spot_share < 1));
  }
  const sim::OfferParts place = sim::find_place("t4@us-east"), cpu = sim::find_place("cpu-4@us-east");
  const sim::Market invented(sim::Dice(1), 0), real(sim::Dice(1), 0, priced.prices);
  CHECK(invented.price_micros_per_hour(place, 0) == 530'000);
  CHECK(real.price_micros_per_hour(place, 0) == 526'000);
  CHECK(real.price_micros_per_hour(cpu, 0) == invented.price_micros_per_hour(cpu, 0));
}
