// Disks that outlive machines (runtime/workflow/provider/volumes.hpp): made once per token, listed under their tag as
// no machine's, on one machine at a time, and deleted only when no machine has them.
#include "runtime/workflow/provider/volumes.hpp"

#include "runtime/workflow/provider/left_over.hpp"
#include "tests/contract/fake.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

struct Disks : Fake {
  const bool here = has().volumes && variable("RILLE_FAKE_FILE", "").empty();  // not moto

  VolumeSeller& seller() {
    VolumeSeller* const found = seller_of_volumes(provider.get());
    REQUIRE(found);
    return *found;
  }

  CreateRequest volume(const std::string& token) {
    VolumeWish wish;
    wish.kind = seller().volume_kinds().front().name;
    wish.size_bytes = 10'000'000'000;
    wish.region = offers("any").front().region;
    const auto sold = wait(seller().volume_offers(wish, {}));
    REQUIRE(sold);
    REQUIRE(sold->size() == 1);
    CHECK(sold->front().price_micros_per_hour == 0);  // only the disk has a price
    CreateRequest request = order(token);
    request.offer = sold->front();
    request.expires_wall_us = 0;
    request.disk_bytes = wish.size_bytes;
    VolumeTraits traits;
    traits.kind = wish.kind;
    tell_volume(request.extra, traits);
    return request;
  }

  Machine made(const CreateRequest& request) {
    const auto answer = wait(provider->create(request, {}));
    if (!answer) FAIL(answer.error().message);
    return *answer;
  }

  CreateRequest with(const std::string& token, const Machine& disk) {
    CreateRequest request = order(token);
    tell_mounts(request.extra, {{"data", disk.id, "l-0", disk.details.text("zone"), false}});
    return request;
  }

  static std::string own_id(const Machine& m) { return m.id.substr(m.id.find('/') + 1); }

  std::size_t disks_of(const Machine& box) {
    std::size_t n = 0;
    const Value objects = control("state")["objects"];
    for (const Value& o : *objects.as_array()) n += o.text("kind") == "disk" && o.text("machine") == own_id(box);
    return n;
  }

  std::vector<Machine> listed(const std::string& tag) {
    const auto found = wait(provider->list(tag, {}));
    if (!found) FAIL(found.error().message);
    return *found;
  }
};

}  // namespace

TEST_CASE_METHOD(Disks, "volumes: a provider without them is no seller, and the error says who is") {
  if (has().volumes) return;
  CHECK_FALSE(seller_of_volumes(provider.get()));
  const Error lack = has_no_volumes(fake_name());
  CHECK(lack.message == fake_name() + " has no volumes");
  CHECK(lack.hint.find("local, aws") != std::string::npos);
}

TEST_CASE_METHOD(Disks, "volumes: one per token, shown under its tag, deleted once") {
  if (!here) return;
  const CreateRequest request = volume("disk");
  const Machine first = made(request);
  CHECK(made(request).id == first.id);
  CHECK(wait(make()->create(request, {}))->id == first.id);
  const Machine live = until(first.id, MachineState::live);
  CHECK(live.tag == request.tag);
  CHECK_FALSE(is_left_over(live));
  REQUIRE(listed(request.tag).size() == 1);
  CHECK(listed(request.tag)[0].state == MachineState::live);
  CHECK(alive() == 1);
  REQUIRE(wait(provider->terminate(first.id, {})));
  until(first.id, MachineState::gone);
  REQUIRE(wait(provider->terminate(first.id, {})));
  CHECK(listed(request.tag).empty());
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Disks, "volumes: an answer that was lost is found by the tag") {
  if (!here) return;
  const CreateRequest request = volume("lost");
  fault("drop_after", "CreateVolume", 1);
  const auto lost = wait(provider->create(request, {}));
  if (!lost) CHECK(lost.error().kind == ErrorKind::network);
  const std::vector<Machine> found = listed(request.tag);
  REQUIRE(found.size() == 1);
  REQUIRE(wait(provider->terminate(found[0].id, {})));
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Disks, "volumes: a machine has its volume before it is live, and the volume outlives it") {
  if (!here) return;
  const CreateRequest request = volume("disk");
  const Machine disk = until(made(request).id, MachineState::live);
  const Machine box = made(with("box", disk));
  until(box.id, MachineState::live);
  const Value objects = control("state")["objects"];
  const std::string own = disk.id.substr(disk.id.find('/') + 1), machine = box.id.substr(box.id.find('/') + 1);
  bool attached = false;
  for (const Value& o : *objects.as_array())
    attached = attached || (o.text("id") == own && o.text("machine") == machine);
  CHECK(attached);
  CHECK(wait(make()->describe(box.id, {}))->state == MachineState::live);  // by a process that attached nothing

  const auto refused = wait(provider->terminate(disk.id, {}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::state);
  const Machine second = made(with("second", disk));  // it waits, and says what for
  advance(30);
  const auto waits = wait(provider->describe(second.id, {}));
  REQUIRE(waits);
  CHECK(waits->state == MachineState::pending);
  CHECK(waits->details.text("problem").find("is not attached") != std::string::npos);

  REQUIRE(wait(provider->terminate(box.id, {})));
  until(box.id, MachineState::gone);
  until(second.id, MachineState::live);
  REQUIRE(wait(provider->terminate(second.id, {})));
  until(second.id, MachineState::gone);
  CHECK(wait(provider->describe(disk.id, {}))->state == MachineState::live);
  REQUIRE(wait(provider->terminate(disk.id, {})));
  for (const Machine& left : listed("rille-0123456789ab-"))
    if (is_free_left_over(left)) REQUIRE(wait(provider->terminate(left.id, {})));
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Disks, "volumes: a machine whose volume was deleted will not start, and says so") {
  if (!here) return;
  const Machine disk = until(made(volume("disk")).id, MachineState::live);
  REQUIRE(wait(provider->terminate(disk.id, {})));
  const Machine box = made(with("box", disk));
  advance(30);
  const auto shown = wait(provider->describe(box.id, {}));
  REQUIRE(shown);
  CHECK(shown->state == MachineState::pending);
  INFO(shown->details.to_json());
  CHECK(shown->details.boolean("hopeless"));
  REQUIRE(wait(provider->terminate(box.id, {})));
}

TEST_CASE_METHOD(Disks, "volumes: one without its tags is not gone") {
  if (!here) return;
  const Machine disk = until(made(volume("disk")).id, MachineState::live);
  control("untag", Value().set("id", own_id(disk)));
  CHECK(wait(provider->describe(disk.id, {}))->state == MachineState::live);
  const Machine box = made(with("box", disk));
  until(box.id, MachineState::live);
  CHECK(wait(provider->describe(disk.id, {}))->state == MachineState::live);  // also while a machine has it
  REQUIRE(wait(provider->terminate(box.id, {})));
  until(box.id, MachineState::gone);
  REQUIRE(wait(provider->terminate(disk.id, {})));
  until(disk.id, MachineState::gone);
}

TEST_CASE_METHOD(Disks, "volumes: a machine has as many as a rent may name") {
  if (!here) return;
  constexpr int most = 16;
  CreateRequest request = order("box");
  std::vector<Mount> mounts;
  for (int i = 0; i < most; ++i) {
    const std::string name = "v" + std::to_string(i);
    const Machine disk = until(made(volume(name)).id, MachineState::live);
    mounts.push_back({name, disk.id, "l-0", disk.details.text("zone"), false});
  }
  tell_mounts(request.extra, mounts);
  const Machine box = made(request);
  const std::size_t roots = disks_of(box);
  until(box.id, MachineState::live);
  CHECK(disks_of(box) == roots + most);
  REQUIRE(wait(provider->terminate(box.id, {})));
  until(box.id, MachineState::gone);
  for (const Mount& m : mounts) REQUIRE(wait(provider->terminate(m.id, {})));
}

TEST_CASE_METHOD(Disks, "volumes: only offers of their zone, and no machine of another") {
  if (fake_name() != "aws" || !here) return;
  const auto in_zones = [this](const char* first, const char* second) {
    Value settings = told["settings"];
    settings.as_object()->erase("subnet");
    settings.as_object()->erase("zone");
    settings.set("regions", Value().set("us-east-1", Value().set("zone", Value::Array{Value(first), Value(second)})));
    told.set("settings", std::move(settings));
    provider = make();
  };
  in_zones("us-east-1b", "us-east-1a");
  const Machine disk = until(made(volume("disk")).id, MachineState::live);
  REQUIRE(disk.details.text("zone") == "us-east-1b");
  in_zones("us-east-1a", "us-east-1b");
  OfferQuery query;
  query.gpu = "A10G";
  for (const bool spot : {false, true}) {
    query.spot = spot;
    query.zone = "";
    const std::size_t all = wait(provider->offers(query, {})).value().size();
    query.zone = "us-east-1b";
    const std::vector<Offer> there = wait(provider->offers(query, {})).value();
    CHECK(there.size() * 2 == all);
    for (const Offer& o : there) CHECK(o.id.find("@us-east-1b") != std::string::npos);
  }
  CreateRequest elsewhere = with("elsewhere", disk);
  query.spot = false;
  query.zone = "us-east-1a";
  elsewhere.offer = wait(provider->offers(query, {})).value().front();  // of the first zone, which its id does not name
  const std::size_t before = machines_made();
  const auto refused = wait(provider->create(elsewhere, {}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::capacity);
  CHECK(machines_made() == before);
  REQUIRE(wait(provider->terminate(disk.id, {})));
}

TEST_CASE_METHOD(Disks, "volumes: no machine that cannot find them is rented") {
  if (fake_name() != "aws" || !here) return;
  const Machine disk = until(made(volume("disk")).id, MachineState::live);
  CreateRequest old = with("old", disk);
  old.offer = offers("V100").front();
  const std::size_t before = machines_made();
  const auto refused = wait(provider->create(old, {}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::capacity);
  CHECK(refused.error().message.find("has no NVMe") != std::string::npos);
  CHECK(machines_made() == before);
  REQUIRE(wait(provider->terminate(disk.id, {})));
}
