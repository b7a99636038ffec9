#include "runtime/workflow/provider/cloud/prices.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace rille;
using namespace rille::provider;
using cloud::smallest_fitting;

namespace {

constexpr std::int64_t gib = 1LL << 30;

Offer type(const std::string& id, const std::string& gpu, int count, std::int64_t gb, int vcpus) {
  Offer out;
  out.id = id;
  out.gpu = gpu;
  out.gpu_count = count;
  out.gpu_memory_bytes = gb * gib;
  out.vcpus = vcpus;
  out.memory_bytes = vcpus * 4 * gib;
  out.price_micros_per_hour = price_unknown;
  return out;
}

// More types without GPUs, and more of the small GPU, than are ever asked for their price.
std::vector<Offer> market() {
  std::vector<Offer> out;
  for (int i = 60; i > 0; --i) out.push_back(type("c" + std::to_string(i), "", 0, 0, i));
  for (int i = 60; i > 0; --i) out.push_back(type("t4-" + std::to_string(i), "T4", 1, 16, 4 * i));
  for (int n : {8, 1}) out.push_back(type("h100x" + std::to_string(n), "H100", n, 80, 24 * n));
  out.push_back(type("h200x8", "H200", 8, 141, 192));
  for (int n : {8, 4, 2, 1}) out.push_back(type("a100x" + std::to_string(n), "A100", n, 80, 12 * n));
  return out;
}

std::vector<std::string> ids(const std::vector<Offer>& offers) {
  std::vector<std::string> out;
  for (const Offer& o : offers) out.push_back(o.id);
  return out;
}

bool has(const std::vector<Offer>& offers, const std::string& id) {
  const auto all = ids(offers);
  return std::find(all.begin(), all.end(), id) != all.end();
}

}  // namespace

TEST_CASE("before prices are known no kind of type crowds out another") {
  OfferQuery query;
  const std::vector<Offer> some = smallest_fitting(market(), query, 20);
  REQUIRE(some.size() == 20);
  for (const char* id : {"t4-1", "h100x1", "h100x8", "h200x8", "a100x1", "a100x2", "a100x4", "a100x8", "c1"}) {
    CAPTURE(id);
    CHECK(has(some, id));
  }
  // Where there is room for few: each GPU once, the smallest of it, then one without.
  CHECK(ids(smallest_fitting(market(), query, 5)) ==
        std::vector<std::string>{"t4-1", "a100x1", "h100x1", "h200x8", "c1"});
  CHECK(ids(smallest_fitting(market(), query, 7)) ==
        std::vector<std::string>{"t4-1", "a100x1", "h100x1", "h200x8", "c1", "a100x2", "h100x8"});
  CHECK(smallest_fitting(market(), query, 1000).size() == market().size());
  CHECK(smallest_fitting({}, query, 20).empty());
}

TEST_CASE("a price cap is rounded up") {
  CHECK(cloud::price_text(1'000'000) == "1.000");
  CHECK(cloud::price_text(1'234'001) == "1.235");
  CHECK(cloud::price_text(999'999) == "1.000");
  CHECK(cloud::price_text(1) == "0.001");
}

TEST_CASE("types whose price is not asked are counted") {
  OfferQuery query;
  query.left_out = std::make_shared<LeftOut>();
  const std::size_t all = market().size();
  CHECK(smallest_fitting(market(), query, 20).size() == 20);
  CHECK(query.left_out->unpriced == static_cast<std::int64_t>(all) - 20);
  CHECK(smallest_fitting(market(), query, 120).size() == 120);  // another region of the same question
  CHECK(query.left_out->unpriced == 2 * static_cast<std::int64_t>(all) - 140);
  query.left_out->unpriced = 0;
  query.gpu = "any";
  query.runnable = true;  // as "any" is read
  CHECK(smallest_fitting(market(), query).size() == 67);
  CHECK(query.left_out->unpriced == 0);
}

TEST_CASE("types whose price is asked fit in all but price and region") {
  OfferQuery query;
  query.gpu = "cpu";
  CHECK(ids(smallest_fitting(market(), query, 3)) == std::vector<std::string>{"c1", "c2", "c3"});
  query.gpu = "A100";
  CHECK(ids(smallest_fitting(market(), query, 20)) == std::vector<std::string>{"a100x1", "a100x2", "a100x4", "a100x8"});
  query.count = 4;
  query.max_price_micros_per_hour = 1;
  query.region = "eu-central-1";
  CHECK(ids(smallest_fitting(market(), query, 20)) == std::vector<std::string>{"a100x4"});
  query.vcpus = 64;
  CHECK(smallest_fitting(market(), query, 20).empty());
}
