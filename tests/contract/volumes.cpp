// Disks that outlive machines (runtime/workflow/provider/volumes.hpp): made once per token, listed under their tag as
// no machine's, on one machine at a time, and deleted only when no machine has them.
#include "runtime/workflow/provider/volumes.hpp"

#include "runtime/workflow/provider/left_over.hpp"
#include "runtime/workflow/provider/lifetime.hpp"
#include "tests/contract/fake.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

// What differs between the providers' volumes.
struct Ways {
  const char* create;                                        // the operation that makes one
  std::size_t most = 16;                                     // volumes of one machine
  std::vector<std::pair<std::string, std::string>> zones{};  // two zones of the settings' list, and their subnets
  bool excludes = true;  // the provider itself lets only one machine at a time have one that is not shared
};
const Ways& ways() {
  static const std::map<std::string, Ways> all{
      {"aws", {"CreateVolume"}},
      {"gcp", {"insertDisk", 16, {{"us-central1-a", ""}, {"us-central1-b", ""}}}},
      {"azure", {"putDisk"}},
      {"runpod", {"createNetworkVolume", 1}},
      {"alibaba",
       {"CreateDisk",
        16,
        {{"cn-hangzhou-i", "vsw-bp1fake000000000000i"}, {"cn-hangzhou-j", "vsw-bp1fake000000000000j"}}}},
      {"tencent", {"CreateDisks", 16, {{"ap-guangzhou-6", "subnet-fake0006"}, {"ap-guangzhou-7", "subnet-fake0007"}}}},
      {"huawei", {"createVolume", 16, {{"cn-north-4a", ""}, {"cn-north-4b", ""}}}},
      {"kubernetes", {"createClaim", 16, {}, false}}};  // pods of one node may share a ReadWriteOnce claim
  return all.at(fake_name());
}

struct Disks : Fake {
  static inline const std::set<std::string> priced{"alibaba", "tencent", "huawei"};  // by the cloud, for a whole disk
  const bool here = has().volumes && variable("RILLE_FAKE_FILE", "").empty();        // not moto
  std::string region;                                                                // of the volumes

  VolumeSeller& seller() {
    VolumeSeller* const found = seller_of_volumes(provider.get());
    REQUIRE(found);
    return *found;
  }

  // kind "": the provider's first.
  CreateRequest volume(const std::string& token, const std::string& kind = "") {
    VolumeWish wish;
    wish.kind = kind.empty() ? seller().volume_kinds().front().name : kind;
    wish.size_bytes = 20'000'000'000;
    auto sold = wait(seller().volume_offers(wish, {}));
    REQUIRE(sold);
    REQUIRE_FALSE(sold->empty());
    wish.region = region = sold->front().region;
    sold = wait(seller().volume_offers(wish, {}));
    REQUIRE(sold);
    REQUIRE(sold->size() == 1);
    CHECK(sold->front().price_micros_per_hour == 0);  // only the disk has a price
    CreateRequest request = order(token);
    request.offer = sold->front();
    request.expires_wall_us = 0;
    request.disk_bytes = wish.size_bytes;
    VolumeTraits traits;
    traits.kind = wish.kind;
    for (const VolumeKind& known : seller().volume_kinds())
      if (known.name == wish.kind) traits.shared = known.shared;
    tell_volume(request.extra, traits);
    return request;
  }

  Machine made(const CreateRequest& request) {
    const auto answer = wait(provider->create(request, {}));
    if (!answer) FAIL(answer.error().message);
    return *answer;
  }

  bool shared() { return seller().volume_kinds().front().shared; }

  Mount mount_of(const std::string& at, const Machine& disk, const std::string& kind = "") {
    const std::string known = kind.empty() ? seller().volume_kinds().front().name : kind;
    return {at, disk.id, "l-0", disk.details.text("zone"), false, known};
  }
  // In the region of the volumes, if they have one.
  CreateRequest with(const std::string& token, const std::vector<Mount>& mounts) {
    CreateRequest request = order(token);
    for (const Offer& offer : region.empty() ? std::vector<Offer>() : offers("any"))
      if (request.offer.region != region) request.offer = offer;
    REQUIRE((region.empty() || request.offer.region == region));
    tell_mounts(request.extra, mounts);
    return request;
  }
  CreateRequest with(const std::string& token, const Machine& disk) {
    return with(token, std::vector<Mount>{mount_of("data", disk)});
  }

  // The provider of settings whose list of zones begins with that one of ways().zones.
  std::unique_ptr<Provider> in_zones(std::size_t first) {
    const auto& zones = ways().zones;
    Value settings = told["settings"];
    Value::Array names, subnets;
    for (const std::size_t i : {first, 1 - first}) {
      names.emplace_back(zones[i].first);
      subnets.emplace_back(zones[i].second);
    }
    settings.set("zone", std::move(names));
    if (!zones[0].second.empty()) settings.set("subnet", std::move(subnets));
    settings.set("regions", Value::Array{Value(region)});
    std::ofstream(root + "/zones.json") << Value().set(fake_name(), std::move(settings)).to_json();
    auto made = make_providers(*loop, root + "/zones.json", root + "/home");
    if (!made) FAIL(made.error().message);
    return std::move(made->front());
  }

  // As the provider knows it, without its region or zone.
  static std::string own_id(const std::string& id) {
    const std::string own = id.substr(id.rfind('/') + 1), mark = "volume-";
    return own.starts_with(mark) ? own.substr(mark.size()) : own;
  }

  // The fake's object that is this volume.
  Value object_of(const Machine& disk) {
    const Value objects = control("state")["objects"];
    for (const Value& o : *objects.as_array())
      if (o.text("kind") == "disk" && own_id(o.text("id")) == own_id(disk.id)) return o;
    FAIL("the fake has no " << disk.id);
    return {};
  }

  void until_listed(const std::string& tag) {  // some show a new volume late
    for (int i = 0; i < 20 && listed(tag).empty(); ++i) advance(10);
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
  for (const char* name : {"local", "aws", "gcp", "kubernetes", "runpod"})
    CHECK(lack.hint.find(name) != std::string::npos);
}

TEST_CASE_METHOD(Disks, "volumes: one per token, shown under its tag, deleted once") {
  if (!here) return;
  const CreateRequest request = volume("disk");
  const Machine first = made(request);
  if (has().tokens) {
    CHECK(made(request).id == first.id);
    CHECK(wait(make()->create(request, {}))->id == first.id);
  }
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
  fault("drop_after", ways().create, 1);
  const auto lost = wait(provider->create(request, {}));
  if (!lost) CHECK(lost.error().kind == ErrorKind::network);
  until_listed(request.tag);
  const std::vector<Machine> found = listed(request.tag);
  REQUIRE(found.size() == 1);
  until(found[0].id, MachineState::live);
  REQUIRE(wait(provider->terminate(found[0].id, {})));
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Disks, "volumes: a machine has its volume before it is live, and the volume outlives it") {
  if (!here || shared()) return;
  const CreateRequest request = volume("disk");
  const Machine disk = until(made(request).id, MachineState::live);
  const Machine box = made(with("box", disk));
  until(box.id, MachineState::live);
  CHECK(own_id(object_of(disk).text("machine")) == own_id(box.id));
  CHECK(wait(make()->describe(box.id, {}))->state == MachineState::live);  // by a process that attached nothing

  const auto refused = wait(provider->terminate(disk.id, {}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::state);
  const Machine second = made(with("second", disk));  // it waits, and says what for
  advance(30);
  const auto waits = wait(provider->describe(second.id, {}));
  REQUIRE(waits);
  CHECK(waits->state == (ways().excludes ? MachineState::pending : MachineState::live));
  CHECK(costs_already(*waits) == ways().excludes);
  if (ways().excludes) CHECK(waits->details.text("problem").find("is not attached") != std::string::npos);

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

TEST_CASE_METHOD(Disks, "volumes: several machines have a shared one, on demand and spot, and it outlives them") {
  if (!here) return;
  std::string kind;
  for (const VolumeKind& known : seller().volume_kinds())
    if (known.shared && kind.empty()) kind = known.name;
  if (kind.empty()) return;
  const Machine disk = until(made(volume("disk", kind)).id, MachineState::live);
  const CreateRequest one = with("one", disk);
  CreateRequest other = with("other", disk);
  if (has().spot)
    for (const Offer& offer : offers("any", true))
      if (offer.region == region && !other.offer.spot) other.offer = offer;
  CHECK(other.offer.spot == has().spot);
  const std::vector<Machine> boxes{made(one), made(other)};
  for (const Machine& box : boxes) until(box.id, MachineState::live);
  for (const Machine& box : boxes) {
    const auto refused = wait(provider->terminate(disk.id, {}));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::state);
    REQUIRE(wait(provider->terminate(box.id, {})));
    until(box.id, MachineState::gone);
  }
  CHECK(wait(provider->describe(disk.id, {}))->state == MachineState::live);
  REQUIRE(wait(provider->terminate(disk.id, {})));
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Disks, "volumes: a machine whose volume was deleted will not start, and says so") {
  if (!here) return;
  const Machine disk = until(made(volume("disk")).id, MachineState::live);
  REQUIRE(wait(provider->terminate(disk.id, {})));
  const CreateRequest request = with("box", disk);
  const std::size_t before = machines_made();
  if (const auto answer = wait(provider->create(request, {})); !answer) {
    INFO(answer.error().message);
    CHECK(answer.error().kind == ErrorKind::capacity);
    if (fake_name() != "kubernetes") CHECK(machines_made() == before);  // its Job is made, and deleted
    CHECK(alive() == 0);
    return;
  }
  const Machine box = made(request);
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
  control("untag", Value().set("id", object_of(disk).text("id")));
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
  const std::size_t most = ways().most, allowed = 16;
  std::vector<Mount> mounts;
  std::vector<Machine> disks;
  for (std::size_t i = 0; i < most; ++i) {
    const std::string name = "v" + std::to_string(i);
    disks.push_back(until(made(volume(name)).id, MachineState::live));
    mounts.push_back(mount_of(name, disks.back()));
  }
  const Machine box = made(with("box", mounts));
  until(box.id, MachineState::live);
  for (const Machine& disk : shared() ? std::vector<Machine>() : disks)
    CHECK(own_id(object_of(disk).text("machine")) == own_id(box.id));
  if (most < allowed) {
    std::vector<Mount> more = mounts;
    more.push_back({"more", mounts.front().id, "l-1", mounts.front().zone, false});
    const std::size_t before = machines_made();
    const auto refused = wait(provider->create(with("more", more), {}));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::invalid);
    CHECK(machines_made() == before);
  }
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

TEST_CASE_METHOD(Disks, "volumes: of several zones in the settings, only offers of theirs, and no machine of another") {
  if (!here || ways().zones.empty()) return;
  region = offers("any").front().region;
  const std::string first = ways().zones[0].first, second = ways().zones[1].first;
  provider = in_zones(1);
  const Machine disk = until(made(volume("disk")).id, MachineState::live);
  REQUIRE(disk.details.text("zone") == second);
  provider = in_zones(0);
  OfferQuery query;
  const std::size_t all = wait(provider->offers(query, {})).value().size();
  query.zone = second;
  const std::vector<Offer> there = wait(provider->offers(query, {})).value();
  CHECK(there.size() * 2 <= all);
  REQUIRE_FALSE(there.empty());
  for (const Offer& o : there) CHECK(o.id.ends_with("@" + second));
  query.zone = first;
  CreateRequest elsewhere = with("elsewhere", disk);
  elsewhere.offer = wait(provider->offers(query, {})).value().front();  // of the first zone, which its id does not name
  const std::size_t before = machines_made();
  const auto refused = wait(provider->create(elsewhere, {}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::capacity);
  CHECK(refused.error().message.find(second) != std::string::npos);
  CHECK(machines_made() == before);
  CreateRequest beside = with("beside", disk);
  beside.offer = there.front();
  const Machine box = until(made(beside).id, MachineState::live);
  REQUIRE(wait(provider->terminate(box.id, {})));
  until(box.id, MachineState::gone);
  REQUIRE(wait(provider->terminate(disk.id, {})));
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Disks, "volumes: no machine that cannot have them is rented") {
  struct Unfit {
    const char *gpu, *kind, *why;
  };
  const std::map<std::string, std::vector<Unfit>> all{
      {"aws", {{"V100", "", "has no NVMe"}}},
      {"gcp", {{"H200", "", "takes no pd-balanced"}, {"L4", "pd-standard", "takes no pd-standard"}}}};
  const auto mine = all.find(fake_name());
  if (mine == all.end() || !here) return;
  for (const Unfit& unfit : mine->second) {
    INFO(unfit.gpu);
    const std::string name = "disk-" + std::to_string(&unfit - mine->second.data());
    const Machine disk = until(made(volume(name, unfit.kind)).id, MachineState::live);
    CreateRequest request = with("old", std::vector<Mount>{mount_of("data", disk, unfit.kind)});
    request.offer = offers(unfit.gpu).front();
    const std::size_t before = machines_made();
    const auto refused = wait(provider->create(request, {}));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::capacity);
    CHECK(refused.error().message.find(unfit.why) != std::string::npos);
    CHECK(machines_made() == before);
    REQUIRE(wait(provider->terminate(disk.id, {})));
  }
}

TEST_CASE_METHOD(Disks, "volumes: of RunPod, where there are some, of the sizes and at the prices that are known") {
  if (fake_name() != "runpod" || !here) return;
  VolumeWish wish;
  wish.kind = "standard";
  const auto sold = [&](std::int64_t gigabytes) {
    wish.size_bytes = gigabytes * 1'000'000'000;
    return wait(seller().volume_offers(wish, {}));
  };
  REQUIRE(sold(500));
  CHECK(sold(500)->size() == 2);
  CHECK(sold(500)->front().disk_micros_per_gb_hour == 96);   // 0.07 dollars a month
  CHECK(sold(2000)->front().disk_micros_per_gb_hour == 83);  // 0.06: half of it costs 0.05
  for (const std::int64_t wrong : {9, 4097}) {
    const auto refused = sold(wrong);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::invalid);
    CHECK(refused.error().message.find(std::to_string(wrong)) != std::string::npos);
  }
  wish.kind = "high_performance";
  REQUIRE(sold(500)->size() == 1);
  CHECK(sold(500)->front().region == "EU-RO-1");
  CHECK(sold(500)->front().disk_micros_per_gb_hour == price_unknown);
  wish.region = "CA-MTL-1";
  CHECK(sold(500)->empty());
}

TEST_CASE_METHOD(Disks, "volumes: at the price that is told for the whole disk, in a zone of the settings") {
  if (!here || !priced.contains(fake_name())) return;
  control("set", Value().set("disk_price", 0.73));  // a thousandth of a yuan for a gigabyte and hour
  VolumeWish wish;
  wish.kind = seller().volume_kinds().front().name;
  wish.size_bytes = 500'000'000'000;
  const auto sold = wait(seller().volume_offers(wish, {}));
  REQUIRE(sold);
  CHECK(sold->front().disk_micros_per_gb_hour == 1'000);
  CHECK(sold->front().currency == "CNY");
  const CreateRequest request = volume("disk");
  provider = make({"zone"});
  const auto nowhere = wait(provider->create(request, {}));
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().kind == ErrorKind::config);
  CHECK(nowhere.error().hint.find("zone") != std::string::npos);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Disks, "volumes: a size that its kind does not have is refused, and nothing is made") {
  if (!here || !priced.contains(fake_name())) return;
  CreateRequest request = volume("small");
  request.disk_bytes = 5'000'000'000;
  const auto refused = wait(provider->create(request, {}));
  REQUIRE_FALSE(refused);
  INFO(refused.error().message);
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Disks, "azure: volumes are made in the zone of the settings, and no machine of another gets them") {
  if (!here || fake_name() != "azure") return;
  const auto in_zone = [this](const char* zone) {
    Value settings = told["settings"];
    if (*zone) settings.set("zone", zone);
    else settings.as_object()->erase("zone");
    told.set("settings", std::move(settings));
    provider = make();
  };
  in_zone("1");
  const Machine disk = until(made(volume("disk")).id, MachineState::live);
  REQUIRE(disk.details.text("zone") == "1");
  OfferQuery query;
  query.zone = "1";
  CHECK_FALSE(wait(provider->offers(query, {})).value().empty());
  for (const char* zone : {"2", ""}) {
    in_zone(zone);
    CHECK(wait(provider->offers(query, {})).value().empty());
    const auto refused = wait(provider->create(with("elsewhere", disk), {}));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::capacity);
    CHECK(refused.error().message.find("is in zone 1") != std::string::npos);
  }
  CHECK(machines_made() == 0);
  REQUIRE(wait(provider->terminate(disk.id, {})));
  CHECK(alive() == 0);
}
