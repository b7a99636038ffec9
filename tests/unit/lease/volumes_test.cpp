#include "runtime/workflow/lease/volumes.hpp"

#include <catch2/catch.hpp>

using namespace rille;
using lease::VolumeTerms;

namespace {

Value read(const char* json) { return Value::from_json(json).value(); }

std::string why(const Result<>& refused) { return refused ? "" : refused.error().message; }

}  // namespace

TEST_CASE("the options of a volume", "[unit]") {
  const VolumeTerms t =
      lease::read_volume_terms(read(R"({"size":"200GB","kind":"gp3","region":"r","keep":false})")).value();
  CHECK(t.wish.size_bytes == 200'000'000'000);
  CHECK(t.wish.kind == "gp3");
  CHECK(t.wish.region == "r");
  CHECK(t.provider.empty());
  CHECK_FALSE(t.keep);
  CHECK(lease::read_volume_terms(Value()).value().keep);
  for (const char* bad : {R"({"size":5})", R"({"size":"0GB"})", R"({"keep":"no"})", R"({"kind":""})", R"({"region":1})",
                          R"({"sise":"1GB"})"}) {
    const auto refused = lease::read_volume_terms(read(bad));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::invalid);
    CHECK_FALSE(refused.error().hint.empty());
  }
  CHECK(lease::read_volume_terms(read(R"({"sise":"1GB"})")).error().hint == "did you mean size?");
}

TEST_CASE("the folders of volumes", "[unit]") {
  CHECK(lease::check_mounts(read(R"({"data":"l-1","my_2-tmp":"l-2"})")));
  for (const char* bad :
       {R"({"..":"l-1"})", R"({"a/b":"l-1"})", R"({"":"l-1"})", R"({"a b":"l-1"})", R"({"a":5})", "[]", R"("x")"})
    CHECK_FALSE(why(lease::check_mounts(read(bad))).empty());
  Value many;
  for (int i = 0; i < 17; ++i) many.set("v" + std::to_string(i), "l-1");
  CHECK(why(lease::check_mounts(many)) == "volumes: 17 are more than 16");
}

TEST_CASE("what a request says of volumes survives the journal", "[unit]") {
  provider::CreateRequest request;
  CHECK_FALSE(provider::is_volume(request));
  CHECK(provider::mounts_in(request).empty());
  provider::VolumeTraits traits;
  traits.kind = "nfs";
  traits.shared = true;
  traits.keep = false;
  provider::tell_volume(request.extra, traits);
  provider::tell_mounts(request.extra, {{"data", "vol-1", "l-1", "r-a", true}, {"tmp", "vol-2", "l-2", "", false}});
  request.offer = provider::volume_offer("p", "nfs", "r", 100);
  request.tag = "t", request.token = "k", request.disk_bytes = 1'500'000'000;
  const provider::CreateRequest back =
      provider::CreateRequest::from_value(Value::from_json(request.to_value().to_json()).value()).value();
  REQUIRE(provider::is_volume(back));
  CHECK(provider::volume_in(back).kind == "nfs");
  CHECK(provider::volume_in(back).shared);
  CHECK_FALSE(provider::volume_in(back).keep);
  REQUIRE(provider::mounts_in(back).size() == 2);
  CHECK(provider::mounts_in(back)[0].at == "data");
  CHECK(provider::mounts_in(back)[0].zone == "r-a");
  CHECK(provider::mounts_in(back)[0].shared);
  CHECK(provider::mounts_in(back)[1].lease == "l-2");
  CHECK(back.offer.price_micros_per_hour == 0);
  CHECK(back.offer.disk_micros(back.disk_bytes) == 200);  // started gigabytes
  CHECK(provider::volume_offer("p", "k", "r", provider::price_unknown).price_micros_per_hour ==
        provider::price_unknown);
}
