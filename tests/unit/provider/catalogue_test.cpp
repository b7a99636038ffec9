// The catalogue file: what goes in comes out, a query finds what Offer::matches accepts, and no junk is believed.
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>

#include "runtime/core/store/hash.hpp"
#include "runtime/workflow/provider/catalogue/cache.hpp"
#include "runtime/workflow/provider/catalogue/layout.hpp"
#include "runtime/workflow/provider/catalogue/rank.hpp"
#include "tests/unit/provider/catalogue_offers.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::provider;
using namespace rille::provider::test;

namespace {

constexpr std::int64_t now_us = 1'800'000'000'000'000, minute_us = 60'000'000;

OfferQuery query(const char* json) {
  Result<OfferQuery> q = OfferQuery::from_value(Value::from_json(json).value());
  if (!q) FAIL(q.error().summary());
  return *q;
}

CataloguePart part(const std::string& provider, const OfferQuery& asked = {}) {
  CataloguePart p;
  p.provider = provider;
  p.scope = scope_of(asked);
  p.time_us = now_us;
  return p;
}

std::string bytes_of(const std::vector<std::pair<CataloguePart, std::vector<Offer>>>& parts) {
  CatalogueWriter writer;
  for (const auto& [p, offers] : parts) REQUIRE(writer.add(p, offers).ok());
  return writer.finish();
}

}  // namespace

TEST_CASE("offers come out of the catalogue as they went in") {
  const std::vector<Offer> aws = random_offers(300, 1, "aws", false), vast = random_offers(200, 2, "vast", true);
  CataloguePart partial = part("aws");
  partial.unpriced = 37;
  const Catalogue c = Catalogue::from_bytes(bytes_of({{partial, aws}, {part("vast"), vast}})).value();
  REQUIRE(c.parts().size() == 2);
  CHECK(c.parts()[0].unpriced == 37);
  CHECK(c.parts()[1].unpriced == 0);
  CHECK(c.rows() == 500);
  for (const auto& [n, offers] : {std::pair(0, &aws), std::pair(1, &vast)}) {
    const std::vector<Offer> out = c.offers(c.parts()[n]);
    REQUIRE(out.size() == offers->size());
    for (std::size_t i = 0; i < out.size(); ++i) REQUIRE(out[i].to_value() == (*offers)[i].to_value());
  }
}

TEST_CASE("the extremes of an offer survive the catalogue, and what does not fit is refused") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::vector<Offer> odd(3);
  odd[0].provider = odd[1].provider = odd[2].provider = "aws";
  odd[0].price_micros_per_hour = odd[0].memory_bytes = odd[0].disk_bytes_max = odd[0].disk_micros_per_gb_hour = most;
  odd[0].reserved_1y_micros_per_hour = odd[0].reserved_3y_micros_per_hour = most;
  odd[0].gpu_count = 65'535, odd[0].vcpus = std::numeric_limits<int>::max(), odd[0].id = std::string(65'535, 'i');
  odd[1].price_micros_per_hour = odd[1].disk_micros_per_gb_hour = price_unknown;
  odd[2].memory_bytes = 1, odd[2].spot = true, odd[2].currency = "";
  const Catalogue c = Catalogue::from_bytes(bytes_of({{part("aws"), odd}})).value();
  const std::vector<Offer> out = c.offers(c.parts()[0]);
  REQUIRE(out.size() == odd.size());
  for (std::size_t i = 0; i < out.size(); ++i) CHECK(out[i].to_value() == odd[i].to_value());

  const auto refusal = [](const std::vector<Offer>& offers) {
    CatalogueWriter writer;
    const Result<> added = writer.add(part("aws"), offers);
    return added ? std::string() : added.error().message;
  };
  std::vector<Offer> one(1);
  one[0].id = "big", one[0].gpu_count = 65'536;
  CHECK_THAT(refusal(one), Catch::Contains("offer big of aws does not fit"));
  one[0].gpu_count = -1;
  CHECK_THAT(refusal(one), Catch::Contains("does not fit"));
  one[0].gpu_count = 1, one[0].id = std::string(65'536, 'i');
  CHECK_THAT(refusal(one), Catch::Contains("does not fit"));
  std::vector<Offer> places(65'537);
  for (std::size_t i = 0; i < places.size(); ++i) places[i].id = places[i].region = "r" + std::to_string(i);
  CHECK_THAT(refusal(places), Catch::Contains("offer r65536 of aws does not fit"));
  places.pop_back();
  CHECK(refusal(places).empty());
  std::vector<Offer> words(65'535);  // and "" and "USD"
  for (std::size_t i = 0; i < words.size(); ++i) words[i].id = words[i].driver = "r" + std::to_string(i);
  CHECK_THAT(refusal(words), Catch::Contains("offer r65534 of aws does not fit"));
  words.pop_back();
  CHECK(refusal(words).empty());

  // What is refused leaves nothing behind.
  CatalogueWriter writer;
  REQUIRE(writer.add(part("aws"), odd).ok());
  one.insert(one.begin(), odd[1]);
  REQUIRE_FALSE(writer.add(part("vast"), one).ok());
  REQUIRE(writer.add(part("gcp"), std::span(odd).first(2)).ok());
  const Catalogue after = Catalogue::from_bytes(writer.finish()).value();
  REQUIRE(after.parts().size() == 2);
  CHECK(after.rows() == 5);
  odd[1].provider = "gcp";
  CHECK(after.offers(after.parts()[1])[1].to_value() == odd[1].to_value());
}

TEST_CASE("numbers that lead beyond the tables of a catalogue show odd offers or none, and no more") {
  const auto offers = random_offers(4, 7, "aws", false);
  std::string bytes = bytes_of({{part("aws"), offers}});
  layout::Header h;
  std::memcpy(&h, bytes.data(), sizeof h);
  const std::size_t rows_at = bytes.size() - h.text_bytes - h.rows * sizeof(layout::Row);
  std::memset(bytes.data() + rows_at, 0xff, sizeof(layout::Row));
  std::memset(bytes.data() + sizeof h, 0xff, sizeof(layout::Part));  // texts, first and count, too
  const std::string sum = store::fingerprint(std::string_view(bytes).substr(sizeof h)).xxh3;
  std::memcpy(bytes.data() + offsetof(layout::Header, checksum), sum.data(), sizeof h.checksum);
  const Result<Catalogue> c = Catalogue::from_bytes(bytes);
  REQUIRE(c);
  CHECK(c->offers(c->parts()[0]).empty());
  CataloguePart all = c->parts()[0];
  all.provider = "aws", all.first = 0, all.count = 99;
  const std::vector<Offer> out = c->offers(all);
  REQUIRE(out.size() == 4);
  CHECK((out[0].id.empty() && out[0].gpu.empty() && out[0].region.empty() && out[0].memory_bytes == 0));
  CHECK(out[1].to_value() == offers[1].to_value());
  const std::size_t first[] = {0};
  CHECK(c->find(first, {}).matching == 0);
}

TEST_CASE("a query of the catalogue finds what matches, in the order of its rank") {
  const std::vector<Offer> aws = random_offers(2000, 3, "aws", false), own = random_offers(200, 4, "sim", false);
  const Catalogue c = Catalogue::from_bytes(bytes_of({{part("aws"), aws}, {part("sim"), own}})).value();
  std::vector<Offer> all = aws;
  all.insert(all.end(), own.begin(), own.end());
  const std::size_t both[] = {0, 1};
  for (const char* json :
       {"{}",
        R"({"gpu":"any"})",
        R"({"gpu":"cpu"})",
        R"({"gpu":"A100"})",
        R"({"gpu":"A100-80GB:8"})",
        R"({"gpu":["H100","A100-80GB:8"]})",
        R"({"gpu":["T4","A100:4"],"count":1})",
        R"({"gpu_memory":"40GB"})",
        R"({"gpu_memory":"24GB","gpu_vendor":"amd"})",
        R"({"gpu_vendor":"nvidia","gpu":"any"})",
        R"({"disk_kind":"nvme"})",
        R"({"gpu":"any","count":4})",
        R"({"max_price":3})",
        R"({"max_price":3,"rates":{"CNY":0.14}})",
        R"({"rates":{"CNY":0.14}})",
        R"({"regions":["us-east-1","eu-west-2"]})",
        R"({"region":"ap-1"})",
        R"({"providers":"sim"})",
        R"({"interconnect":"nvlink"})",
        R"({"interconnect":"rdma"})",
        R"({"interconnect":"efa"})",
        R"({"interconnect":"pcie"})",
        R"({"compliance":"gdpr"})",
        R"({"compliance":["hipaa","gdpr"]})",
        R"({"network_gbps":200})",
        R"({"vcpus":64,"memory":"256GB"})",
        R"({"rank":"price_per_tflop"})",
        R"({"rank":"price_per_gpu_gb","gpu":"H100"})",
        R"({"rank":"tokens_per_dollar","tokens_per_second":{"H100":9500,"A100 40GB":3000,"A100":4000}})"}) {
    INFO(json);
    const OfferQuery q = query(json);
    std::vector<Offer> expected;
    for (const Offer& o : all)
      if (o.matches(q) && q.accepts_provider(o.provider)) expected.push_back(o);
    sort_by_rank(expected, q);
    const Catalogue::Found found = c.find(both, q);
    CHECK(found.matching == expected.size());
    CHECK_FALSE(expected.empty());
    REQUIRE(found.offers.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE(found.offers[i].to_value() == expected[i].to_value());
    const Catalogue::Found few = c.find(both, q, 5);
    CHECK(few.matching == expected.size());
    CHECK(few.offers.size() == std::min<std::size_t>(5, expected.size()));
    CHECK(few.offers.back().id == expected[few.offers.size() - 1].id);
  }
}

TEST_CASE("a catalogue that is torn, foreign or of another version is refused") {
  const std::string sound = bytes_of({{part("aws"), random_offers(20, 5, "aws", false)}});
  REQUIRE(Catalogue::from_bytes(sound).ok());
  const auto refused = [](std::string_view bytes) {
    const Result<Catalogue> c = Catalogue::from_bytes(bytes);
    return !c && c.error().kind == ErrorKind::integrity;
  };
  for (std::size_t size = 0; size < sound.size(); size += 7) REQUIRE(refused(sound.substr(0, size)));
  REQUIRE(refused(sound + "x"));
  for (std::size_t at = 0; at < sound.size(); ++at) {
    std::string flipped = sound;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x40);
    REQUIRE(refused(flipped));
  }
  CHECK(refused("SQLite format 3"));
  CHECK(refused(std::string(4096, '\0')));
  CHECK(Catalogue::open("/nonexistent/offers").error().kind == ErrorKind::io);
}

TEST_CASE("an answer is used while it is fresh, for its settings, and for what was asked") {
  TempDir home;
  const OfferSource gcp{"gcp", "s1"}, aws{"aws", "s2"};
  const OfferQuery everything, a100 = query(R"({"gpu":"A100"})"), spot = query(R"({"spot":true})");
  {
    OfferCache cache(home.path);
    CHECK_FALSE(cache.fresh(gcp, everything, now_us, minute_us));
    REQUIRE(cache
                .store({{gcp, random_offers(50, 6, "gcp", false)}, {aws, random_offers(50, 7, "aws", false)}},
                       everything, now_us)
                .ok());
  }
  OfferCache cache(home.path);
  CHECK(cache.fresh(gcp, everything, now_us + minute_us, minute_us));
  CHECK_FALSE(cache.fresh(gcp, everything, now_us + minute_us + 1, minute_us));
  CHECK_FALSE(cache.fresh(gcp, everything, now_us - 1, minute_us));  // the clock was set back
  CHECK_FALSE(cache.fresh({"gcp", "other"}, everything, now_us, minute_us));
  CHECK_FALSE(cache.fresh(gcp, spot, now_us, minute_us));
  // Google lists all that it has; Amazon's prices are asked for what fits the question best.
  CHECK(cache.fresh(gcp, a100, now_us, minute_us));
  CHECK_FALSE(cache.fresh(aws, a100, now_us, minute_us));
  // What Rille itself sorts out does not matter to the answer.
  CHECK(cache.fresh(aws, query(R"({"max_price":2,"compliance":"gdpr","rank":"price_per_tflop"})"), now_us, minute_us));

  REQUIRE(cache.store({{aws, random_offers(9, 8, "aws", false)}}, a100, now_us + 5).ok());
  REQUIRE(cache.store({{aws, random_offers(9, 9, "aws", false), 4}}, a100, now_us + 6).ok());
  const auto at = cache.fresh(aws, a100, now_us + 7, minute_us);
  REQUIRE(at);
  CHECK(cache.part(*at).time_us == now_us + 6);
  CHECK(cache.part(*at).unpriced == 4);
  CHECK(cache.fresh(aws, everything, now_us + 7, minute_us));
  const std::size_t one[] = {*at};
  CHECK(cache.find(one, everything, 0).matching == 9);

  // Other settings: earlier answers are useless; and no answer is kept for ever.
  REQUIRE(cache.store({{{"aws", "s3"}, {}}}, everything, now_us + 8).ok());
  CHECK_FALSE(cache.fresh(aws, a100, now_us + 8, minute_us));
  REQUIRE(cache.store({{{"aws", "s3"}, {}}}, everything, now_us + 25 * 60 * minute_us).ok());
  CHECK_FALSE(cache.fresh(gcp, everything, now_us + 25 * 60 * minute_us, 100 * 60 * minute_us));
}

TEST_CASE(
    "hosts that were not reached are remembered for a minute, with the offers of other hosts; other errors are not") {
  TempDir home;
  OfferCache cache(home.path);
  const OfferSource ssh{"ssh", "s"}, gcp{"gcp", "s"};
  const auto place = [](const char* name, ErrorKind kind) {
    return AskedRegion{name, make_error(kind, std::string(name) + " is silent", "is it on?").with_retry()};
  };
  const AskedRegion off = place("gpu1", ErrorKind::network), refused = place("gpu1", ErrorKind::auth);
  const std::vector<Offer> two = random_offers(2, 1, "ssh", false);
  REQUIRE(cache.store({{ssh, two, 0, {off}}}, {}, now_us).ok());
  const auto at = OfferCache(home.path).fresh(ssh, {}, now_us + minute_us, 60 * minute_us);
  REQUIRE(at);
  const std::size_t parts[] = {*at};
  CHECK(cache.find(parts, {}, 0).matching == 2);
  const std::vector<AskedRegion> told = cache.unasked(*at);
  REQUIRE(told.size() == 1);
  CHECK(told[0].region == "gpu1");
  CHECK(told[0].problem->message == "gpu1 is silent");
  CHECK(told[0].problem->hint == "is it on?");
  CHECK(told[0].problem->kind == ErrorKind::network);
  CHECK(told[0].problem->retryable);
  CHECK_FALSE(cache.fresh(ssh, {}, now_us + minute_us + 1, 60 * minute_us));
  CHECK_FALSE(cache.fresh(ssh, {}, now_us + 2, 1));  // a query for newer offers asks again
  // What is not kept leaves what is there.
  REQUIRE(cache.store({{ssh, {}, 0, {refused}}}, {}, now_us + 1).ok());
  REQUIRE(cache.store({{ssh, {}, 0, {off, refused}}}, {}, now_us + 1).ok());
  REQUIRE(cache.store({{gcp, random_offers(3, 2, "gcp", false), 0, {off}}}, {}, now_us + 1).ok());
  CHECK_FALSE(cache.fresh(gcp, {}, now_us + 1, minute_us));
  const auto still = cache.fresh(ssh, {}, now_us + 1, minute_us);
  REQUIRE(still);
  CHECK(cache.part(*still).count == 2);
  // All of them answer again.
  REQUIRE(cache.store({{ssh, two}}, {}, now_us + 2).ok());
  const auto whole = cache.fresh(ssh, {}, now_us + 60 * minute_us, 60 * minute_us);
  REQUIRE(whole);
  CHECK(cache.unasked(*whole).empty());
}

TEST_CASE("another region or account of the environment is another source") {
  TempDir home;
  const std::string file = home.path / "providers.json";
  REQUIRE(store::write_file_atomic(file, R"({"aws": {}, "gcp": {}, "vast": {}})").ok());
  const auto prints = [&file] {
    std::map<std::string, std::string> out;
    const Result<OfferSettings> settings = read_offer_settings(file);
    REQUIRE(settings);
    for (const OfferSource& s : settings->sources) out[s.provider] = s.settings;
    return out;
  };
  const auto before = prints();
  REQUIRE(before.size() == 3);
  CHECK(prints() == before);
  for (const auto& [name, provider] : {std::pair("AWS_REGION", "aws"),
                                       {"AWS_PROFILE", "aws"},
                                       {"AWS_ACCESS_KEY_ID", "aws"},
                                       {"CLOUDSDK_COMPUTE_REGION", "gcp"},
                                       {"GOOGLE_CLOUD_PROJECT", "gcp"},
                                       {"VAST_API_KEY", "vast"}}) {
    INFO(name);
    const char* text = std::getenv(name);
    const std::optional<std::string> old = text ? std::optional<std::string>(text) : std::nullopt;
    setenv(name, "another-one", 1);
    auto now = prints();
    if (old) setenv(name, old->c_str(), 1);
    else unsetenv(name);
    CHECK(now[provider] != before.at(provider));
    CHECK(now[provider].find("another-one") == std::string::npos);
    now[provider] = before.at(provider);  // and of the others nothing has changed
    CHECK(now == before);
  }
  CHECK(prints() == before);
}

TEST_CASE("a cache that is damaged counts as none, and is written anew") {
  TempDir home;
  const OfferSource gcp{"gcp", "s"};
  std::filesystem::create_directories(home.path / "cache");
  REQUIRE(store::write_file_atomic(home.path / "cache/offers", "not a catalogue").ok());
  OfferCache cache(home.path);
  CHECK_FALSE(cache.fresh(gcp, {}, now_us, minute_us));
  REQUIRE(cache.store({{gcp, random_offers(3, 1, "gcp", false)}}, {}, now_us).ok());
  CHECK(OfferCache(home.path).fresh(gcp, {}, now_us, minute_us));
}

TEST_CASE(
    "a cache of an older version is ignored and rewritten; an offer that does not fit loses no other provider's "
    "offers") {
  TempDir home;
  const OfferSource gcp{"gcp", "s"}, vast{"vast", "s"};
  OfferCache cache(home.path);
  REQUIRE(cache.store({{gcp, random_offers(3, 1, "gcp", false)}}, {}, now_us).ok());
  const std::string path = home.path / "cache/offers";
  std::string bytes = store::read_file(path, 1 << 20).value();
  bytes[offsetof(layout::Header, version)] = 3;
  REQUIRE(store::write_file_atomic(path, bytes).ok());
  OfferCache older(home.path);
  CHECK_FALSE(older.fresh(gcp, {}, now_us, minute_us));
  std::vector<Offer> odd = random_offers(3, 2, "vast", true);
  odd[1].id = std::string(70'000, 'i');
  REQUIRE(older.store({{vast, odd}, {gcp, random_offers(3, 1, "gcp", false)}}, {}, now_us).ok());
  const OfferCache anew(home.path);
  CHECK(anew.fresh(gcp, {}, now_us, minute_us));
  CHECK_FALSE(anew.fresh(vast, {}, now_us, minute_us));
}
