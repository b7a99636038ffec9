// What the user names, in the settings or in a rent, stands in the order: keys, images, reservations, tags.
#include <fmt/format.h>

#include "runtime/workflow/provider/manner.hpp"
#include "tests/contract/with_settings.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

struct Named {
  const char* setting;
  Value value;
  const char* wanted;  // stands in the order
};

// Of each provider what its fake takes.
std::vector<Named> named_by_settings() {
  const Value by_type = Value().set("p4d.24xlarge", "cr-0123456789abcdef0");
  const std::map<std::string, std::vector<Named>> all{
      {"aws",
       {{"kms_key", "arn:aws:kms:us-east-1:1:key/k1", "\"arn:aws:kms:us-east-1:1:key/k1\""},
        {"reservation", by_type, "\"cr-0123456789abcdef0\""}}},
      {"azure",
       {{"kms_key", "/subscriptions/s/diskEncryptionSets/k1", "{\"id\":\"/subscriptions/s/diskEncryptionSets/k1\"}"},
        {"reservation", "/subscriptions/s/capacityReservationGroups/g1",
         "\"capacityReservationGroup\":{\"id\":\"/subscriptions/s/capacityReservationGroups/g1\"}"}}},
      {"gcp",
       {{"kms_key", "projects/p/locations/l/keyRings/r/cryptoKeys/k1",
         "{\"kmsKeyName\":\"projects/p/locations/l/keyRings/r/cryptoKeys/k1\"}"},
        {"security_group", "lets-ssh-in", "\"tags\":{\"items\":[\"lets-ssh-in\"]}"},
        {"vpc", "global/networks/default", "\"global/networks/default\""},
        {"reservation", "mine", "\"consumeReservationType\":\"SPECIFIC_RESERVATION\""}}},
      {"alibaba",
       {{"kms_key", "key-1", "\"SystemDisk.KMSKeyId\":\"key-1\""},
        {"reservation", "crp-1", "\"PrivatePoolOptions.Id\":\"crp-1\""}}},
      {"huawei",
       {{"kms_key", "0fd1b4f4-7e4a-4409-9701-ba8be283dbc3",
         "\"__system__cmkid\":\"0fd1b4f4-7e4a-4409-9701-ba8be283dbc3\""}}},
      {"tencent", {}}};
  const auto mine = all.find(fake_name());
  return mine == all.end() ? std::vector<Named>() : mine->second;
}

// Of each provider that has such a thing: what a rent says of it, and what the settings say.
struct Chosen {
  const char* option;
  Value of_settings;
  std::string of_rent, wanted;
};
std::vector<Chosen> chosen_by_rent(const Value& settings) {
  const std::string group = "/subscriptions/s/capacityReservationGroups/theirs";
  const std::string image = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/images/theirs";
  const std::string usual = settings.text("image");  // which the fake has
  const auto by_field = [&](const std::string& field) {
    return Chosen{"image", "not-there", usual, fmt::format("\"{}\":\"{}\"", field, usual)};
  };
  const std::map<std::string, std::vector<Chosen>> all{
      {"aws",
       {{"reservation", "cr-0aaaaaaaaaaaaaaaa", "cr-0123456789abcdef0",
         "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId\":"
         "\"cr-0123456789abcdef0\""},
        {"image", "ami-0b1b2c3d4e5f60718", "ami-0d1b2c3d4e5f60718", "\"ImageId\":\"ami-0d1b2c3d4e5f60718\""}}},
      {"azure",
       {{"reservation", "/subscriptions/s/capacityReservationGroups/mine", group,
         "\"capacityReservation\":{\"capacityReservationGroup\":{\"id\":\"" + group + "\"}}"},
        {"image", Value().set("id", "not-there"), image, "\"imageReference\":{\"id\":\"" + image + "\"}"}}},
      {"gcp",
       {{"reservation", "mine", "theirs",
         "\"reservationAffinity\":{\"consumeReservationType\":\"SPECIFIC_RESERVATION\","
         "\"key\":\"compute.googleapis.com/reservation-name\",\"values\":[\"theirs\"]}"},
        by_field("sourceImage")}},
      {"alibaba", {{"reservation", "crp-1", "eap-2", "\"PrivatePoolOptions.Id\":\"eap-2\""}, by_field("ImageId")}},
      {"tencent", {by_field("ImageId")}},
      {"huawei", {by_field("imageRef")}},
      {"lambda", {by_field("family")}},
      {"vast", {by_field("image")}},
      {"runpod", {by_field("image")}},
      {"kubernetes", {{"priority_class", "cheap", "urgent", "\"priorityClassName\":\"urgent\""}, by_field("image")}}};
  const auto mine = all.find(fake_name());
  return mine == all.end() ? std::vector<Chosen>() : mine->second;
}

// What stands in the order beside our own tag; "": the provider has no tags.
std::string tag_in_order() {
  const std::map<std::string, std::string> all{{"aws", "\"TagSpecification.2.Tag.3.Key\":\"team\""},
                                               {"alibaba", "\"Tag.2.Key\":\"team\""},
                                               {"azure", "\"team\":\"vision\""},
                                               {"gcp", "\"team\":\"vision\""},
                                               {"tencent", "{\"Key\":\"team\",\"Value\":\"vision\"}"},
                                               {"huawei", "{\"key\":\"team\",\"value\":\"vision\"}"},
                                               {"lambda", "{\"key\":\"team\",\"value\":\"vision\"}"},
                                               {"kubernetes", "\"team\":\"vision\""}};
  const auto mine = all.find(fake_name());
  return mine == all.end() ? "" : mine->second;
}

}  // namespace

TEST_CASE_METHOD(WithSettings, "settings: a key, a group and a reservation of one's own stand in the order") {
  if (!variable("RILLE_FAKE_FILE", "").empty()) return;
  for (const Named& named : named_by_settings()) {
    INFO(named.setting);
    const Value before = told["settings"];
    say(named.setting, named.value);
    const auto made = wait(provider->create(order_of(named.setting, "A100"), {}));
    if (!made) FAIL(made.error().message + " / " + made.error().hint);
    CHECK(was_sent(named.wanted));
    end(made->id);
    told.set("settings", before);
  }
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(WithSettings, "rent: what it says to one provider alone comes before the settings") {
  const std::vector<Chosen> all = chosen_by_rent(told["settings"]);
  const auto& understood = manner_of(fake_name()).options;
  REQUIRE(understood.size() == all.size());
  if (!variable("RILLE_FAKE_FILE", "").empty()) return;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Chosen& chosen = all[i];
    INFO(chosen.option);
    REQUIRE(std::string(understood[i]) == chosen.option);
    const Value before = told["settings"];
    say(chosen.option, chosen.of_settings);
    CreateRequest request = order_of(fmt::format("chosen {}", chosen.option), "A100");
    request.extra.set(chosen.option, chosen.of_rent);
    const auto made = wait(provider->create(request, {}));
    if (!made) FAIL(made.error().message + " / " + made.error().hint);
    CHECK(was_sent(chosen.wanted));
    CHECK_FALSE(was_sent(chosen.of_settings.to_json()));
    end(made->id);
    told.set("settings", before);
  }
}

TEST_CASE_METHOD(WithSettings, "settings: the user's tags stand beside our own, and are not taken for it") {
  const std::string wanted = tag_in_order();
  if (wanted.empty() || !variable("RILLE_FAKE_FILE", "").empty()) return;
  const char* const field = fake_name() == "kubernetes" ? "labels" : "tags";
  say(field, Value().set("team", "vision"));
  const CreateRequest request = order_of("tagged", "A100");
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message + " / " + made.error().hint);
  CHECK(was_sent(wanted));
  const auto listed = wait(provider->list("rille-", {}));
  REQUIRE(listed);
  REQUIRE(listed->size() == 1);
  CHECK(listed->front().tag == request.tag);
  end(made->id);
}
