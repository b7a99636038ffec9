// What only one provider has.
#include "tests/contract/fake.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

struct OfAws : Fake {
  const bool here = fake_name() == "aws" && variable("RILLE_FAKE_FILE", "").empty();  // not moto

  std::size_t asked(const std::string& operation) {
    std::size_t n = 0;
    const Value state = control("state");
    for (const Value& call : *state["calls"].as_array()) n += call.text("operation") == operation;
    return n;
  }
};

}  // namespace

TEST_CASE_METHOD(OfAws, "aws: a group that was left without its rule gets it, and one that has it is left alone") {
  if (!here) return;
  const CreateRequest request = order("first");
  fault("refuse", "AuthorizeSecurityGroupIngress");
  CHECK_FALSE(wait(make({"security_group", "subnet"})->create(request, {})));
  CHECK(asked("RunInstances") == 0);
  REQUIRE(wait(make({"security_group", "subnet"})->create(request, {})));
  CHECK(asked("CreateSecurityGroup") == 1);
  CHECK(asked("AuthorizeSecurityGroupIngress") == 2);
  REQUIRE(wait(make({"security_group", "subnet"})->create(order("second"), {})));
  CHECK(asked("CreateSecurityGroup") == 1);
  CHECK(asked("AuthorizeSecurityGroupIngress") == 2);
}

TEST_CASE_METHOD(OfAws, "aws: a group that another process makes meanwhile is taken") {
  if (!here) return;
  REQUIRE(wait(make({"security_group", "subnet"})->create(order("first"), {})));
  control("set", Value().set("hidden_groups", 1));
  REQUIRE(wait(make({"security_group", "subnet"})->create(order("second"), {})));
  CHECK(asked("CreateSecurityGroup") == 2);  // the second was refused
}

TEST_CASE_METHOD(OfAws, "aws: in China's regions prices are in yuan, and on demand they are not known") {
  if (!here) return;
  Value settings = told["settings"];
  settings.set("regions", Value::Array{"cn-north-1"}).set("zone", "cn-north-1a");
  told.set("settings", std::move(settings));
  provider = make();
  for (const bool spot : {false, true}) {
    const std::vector<Offer> some = offers("T4", spot);
    REQUIRE_FALSE(some.empty());
    for (const Offer& o : some) {
      CHECK(o.currency == "CNY");
      CHECK((o.price_micros_per_hour == price_unknown) == !spot);
      CHECK(o.dollars() == price_unknown);
    }
  }
  CHECK(asked("GetProducts") == 0);
}

TEST_CASE_METHOD(Fake, "tencent: the account's currency is what the settings say") {
  if (fake_name() != "tencent") return;
  for (const Offer& o : offers()) CHECK(o.currency == "CNY");
  Value settings = told["settings"];
  settings.set("currency", "USD");
  told.set("settings", settings);
  provider = make();
  CHECK(provider->traits().currency == "USD");
  const std::vector<Offer> some = offers();
  REQUIRE_FALSE(some.empty());
  for (const Offer& o : some) CHECK(o.dollars() == o.price_micros_per_hour);
  std::ofstream(root + "/wrong.json") << Value().set("tencent", settings.set("currency", "EUR")).to_json();
  const auto wrong = make_providers(*loop, root + "/wrong.json", root + "/home");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().kind == ErrorKind::config);
  CHECK(wrong.error().message.find("currency = \"EUR\"") != std::string::npos);
}
