#include "runtime/workflow/lease/volumes.hpp"

#include "runtime/workflow/lease/budget.hpp"
#include "tests/unit/lease/cloud.hpp"

using namespace rille;
using lease::VolumeTerms;

namespace {

using provider::MachineState;

// Sells disks and machines of two zones, and does what it is told: it does not know what is in use.
class Shelf final : public provider::Provider, public provider::VolumeSeller {
 public:
  Shelf() {
    traits_.dead_man = provider::DeadMan::provider;
    traits_.create_timeout_ms = 60'000;
    traits_.visibility_lag_ms = 60'000;
  }
  const std::string& name() const override { return name_; }
  const provider::Traits& traits() const override { return traits_; }
  const std::vector<provider::VolumeKind>& volume_kinds() const override {
    static const std::vector<provider::VolumeKind> all{{"disk"}};
    return all;
  }
  Async<std::vector<provider::Offer>> volume_offers(provider::VolumeWish wish, CancelToken) override {
    co_return std::vector<provider::Offer>{provider::volume_offer(name_, wish.kind, place, price)};
  }
  Async<std::vector<provider::Offer>> offers(provider::OfferQuery query, CancelToken) override {
    std::vector<provider::Offer> out;
    for (const char* zone : {"a", "b"}) {
      provider::Offer o;
      o.provider = name_;
      o.id = std::string("box@") + zone;
      o.region = "r1";
      o.price_micros_per_hour = out.empty() ? 1'000 : 2'000;
      if (query.zone.empty() || query.zone == zone) out.push_back(std::move(o));
    }
    co_return out;
  }
  Async<provider::Machine> create(provider::CreateRequest request, CancelToken) override {
    ++creates;
    provider::Machine m;
    const bool volume = provider::is_volume(request);
    m.id = (volume ? "v-" : "m-") + std::to_string(creates);
    m.tag = request.tag;
    m.details.set("zone", "b");
    m.state = !volume ? MachineState::live : stillborn ? MachineState::terminating : MachineState::pending;
    there[m.id] = m;
    co_return m;
  }
  Async<provider::Machine> describe(std::string id, CancelToken) override {
    provider::Machine gone;
    gone.id = id;
    const auto at = there.find(id);
    if (at == there.end() || hidden.contains(id)) co_return gone;
    if (at->second.state == MachineState::pending && breaks) {
      at->second.state = MachineState::terminating;
      at->second.details.set("problem", "it broke");
    } else if (at->second.state == MachineState::pending && ++looks >= 3) {
      at->second.state = MachineState::live;
    }
    co_return at->second;
  }
  Async<std::vector<provider::Machine>> list(std::string tag, CancelToken) override {
    std::vector<provider::Machine> out;
    for (const auto& [id, m] : there)
      if (m.tag.starts_with(tag) && !hidden.contains(id)) out.push_back(m);
    co_return out;
  }
  Async<> terminate(std::string id, CancelToken) override {
    deleted.push_back(id);
    there.erase(id);
    co_return success();
  }

  std::map<std::string, provider::Machine> there;
  std::set<std::string> hidden;  // the provider does not show these
  std::vector<std::string> deleted;
  Micros price = 1'000;
  std::string place = "r1";  // region of the volumes
  int creates = 0, looks = 0;
  bool stillborn = false, breaks = false;

 private:
  const std::string name_ = "shelf";
  provider::Traits traits_;
};

struct VolumeHome : lease::test::World {
  Shelf* shelf = nullptr;
  VolumeHome() {
    auto made = std::make_unique<Shelf>();
    shelf = made.get();
    (void)registry.add(std::move(made));
    run("r");
  }
  lease::Acquire volume(bool keep = true) const {
    Value options;
    options.set("size", "10GB").set("provider", "shelf").set("keep", keep);
    lease::Acquire a = wanted("r", "data", std::move(options));
    a.volume = true;
    return a;
  }
  lease::Lease make(bool keep = true) {
    const auto made = rent(volume(keep));
    REQUIRE(made);
    if (!*made) FAIL(made->error().message);
    return **made;
  }
  lease::Lease box_with(const lease::Lease& disk, Value options = Value()) {
    Value volumes;
    volumes.set("data", disk.id);
    const auto made = rent(wanted("r", "box", options.set("volumes", volumes)));
    REQUIRE(made);
    if (!*made) FAIL(made->error().message);
    return **made;
  }
  std::size_t users(const lease::Lease& disk) {
    return lease::users_of(journal->reader(), disk.id, clock.us).value().size();
  }
  lease::ReapReport look(const std::string& unknown = "") {
    clock.us += 600'000'000;
    lease::ReapRequest request;
    request.alive = [](const std::string&) { return false; };
    request.unknown = unknown;
    const auto report = drive(manager->reaper().reap(std::move(request)));
    REQUIRE(report);
    if (!*report) FAIL(report->error().message);
    return **report;
  }
};

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
  provider::tell_mounts(request.extra,
                        {{"data", "r/vol-1", "l-1", "r-a", true, "nfs"}, {"tmp", "vol-2", "l-2", "", false}});
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
  CHECK(provider::mounts_in(back)[0].kind == "nfs");
  CHECK(provider::mounts_in(back)[0].own_id() == "vol-1");
  CHECK(provider::mounts_in(back)[1].lease == "l-2");
  CHECK(back.offer.price_micros_per_hour == 0);
  CHECK(back.offer.disk_micros(back.disk_bytes) == 200);  // started gigabytes
  request.offer = provider::volume_offer("p", "k", "r", provider::price_unknown);
  const provider::CreateRequest unpriced =
      provider::CreateRequest::from_value(Value::from_json(request.to_value().to_json()).value()).value();
  CHECK(unpriced.offer.price_micros_per_hour == 0);
  CHECK(unpriced.offer.disk_micros_per_gb_hour == provider::price_unknown);
}

TEST_CASE("a kept volume that its provider does not show is not deleted", "[lease]") {
  VolumeHome home;
  const lease::Lease disk = home.make();
  home.shelf->hidden.insert(disk.machine_id);
  const lease::ReapReport closed = home.look();
  REQUIRE(closed.released.size() == 1);
  CHECK(closed.failed.empty());
  CHECK(home.shelf->deleted.empty());
  CHECK(home.row(disk.id).state == "released");
  CHECK_FALSE(home.row(disk.id).error.empty());

  home.shelf->hidden.clear();  // it is there after all
  const lease::ReapReport again = home.look();
  REQUIRE(again.unknown.size() == 1);
  CHECK(again.unknown[0].machine_id == disk.machine_id);
  CHECK(home.shelf->deleted.empty());
  (void)home.look(disk.machine_id);  // by a word
  CHECK(home.shelf->there.empty());
}

TEST_CASE("a kept volume that was deleted by a word and is still there is deleted again", "[lease]") {
  VolumeHome home;
  const lease::Lease disk = home.make();
  const provider::Machine machine = home.shelf->there.at(disk.machine_id);
  REQUIRE(home.release(disk.id)->ok());
  home.shelf->there[machine.id] = machine;
  CHECK(home.look().unknown.empty());
  CHECK(home.shelf->there.empty());
}

TEST_CASE("a volume whose provider does not tell its price", "[lease]") {
  VolumeHome home;
  home.shelf->price = provider::price_unknown;
  home.sql("UPDATE runs SET budget_micros=100000000");
  const auto refused = home.rent(home.volume());
  REQUIRE(refused);
  REQUIRE_FALSE(*refused);
  CHECK(refused->error().kind == ErrorKind::budget);
  CHECK(refused->error().message.find("the price of its disk is not known") != std::string::npos);
  CHECK(refused->error().hint.find("disk_price") != std::string::npos);

  home.manager->queries().set_disk_prices({{"shelf", 0.073}});  // per month: 100 micros per hour
  const lease::Lease disk = home.make();
  CHECK(disk.price().micros == 1'000);
  const lease::Lease row = home.row(disk.id);
  REQUIRE(row.tenures.size() == 1);
  CHECK_FALSE(row.tenures[0].unknown());
  home.clock.us += 3'600'000'000;
  CHECK(home.row(disk.id).spent_micros(home.clock.us) > 0);
}

TEST_CASE("a month's budget counts a volume from the month's start to its end", "[lease]") {
  VolumeHome home;
  home.sql("INSERT INTO budgets(scope,limit_micros,alert_percent,alert_url) VALUES('month',100000000,80,'')");
  const lease::Lease disk = home.make();  // 10,000 micros per hour, from the middle of January on
  home.clock.us += 60LL * 86'400'000'000;
  const std::int64_t month_us = lease::month_start_us(home.clock.us);
  const auto hours = [](std::int64_t us) { return static_cast<double>(us) / 3.6e9; };
  const auto month = [&] { return home.manager->budgets().value().at(0); };
  const double whole = 10'000 * hours(lease::month_start_us(month_us + 40LL * 86'400'000'000) - month_us);
  CHECK(static_cast<double>(month().reserved) == Approx(whole).margin(5));
  CHECK(home.row(disk.id).spent_micros(home.clock.us) > static_cast<Micros>(whole));
  const double until_now = 10'000 * hours(home.clock.us - month_us);
  REQUIRE(home.release(disk.id)->ok());
  CHECK(static_cast<double>(month().spent) == Approx(until_now).margin(5'000));  // the release takes some time
  CHECK(month().reserved == 0);
}

TEST_CASE("a volume is in use while its instance gets another machine", "[lease]") {
  VolumeHome home;
  const lease::Lease disk = home.make(), box = home.box_with(disk);
  CHECK(home.users(disk) == 1);
  home.sql("UPDATE leases SET state='released', open=NULL, replacing='it was lost' WHERE name='box'");
  CHECK(home.users(disk) == 1);
  const auto refused = home.release(disk.id);
  REQUIRE(refused);
  REQUIRE_FALSE(*refused);
  CHECK(refused->error().code == "volume_in_use");
  home.sql("UPDATE leases SET generation=0 WHERE name='box'");  // a fork's, which had no machine yet
  CHECK(home.users(disk) == 0);
  home.sql("UPDATE leases SET generation=1 WHERE name='box'");
  REQUIRE(home.release(box.id)->ok());  // no other machine follows
  CHECK(home.users(disk) == 0);
  home.sql("UPDATE leases SET replacing='it was lost' WHERE name='box'; UPDATE runs SET state='done'");
  CHECK(home.users(disk) == 0);
  CHECK(home.release(disk.id)->ok());
}

TEST_CASE("nothing ends a volume that an instance has", "[lease]") {
  VolumeHome home;
  const lease::Lease disk = home.make(false), box = home.box_with(disk);
  home.sql("UPDATE leases SET detached=1 WHERE name='box'; UPDATE runs SET state='done'");
  const lease::ReapReport report = home.look();
  REQUIRE(report.failed.size() == 1);
  CHECK(report.failed[0].error.find("is mounted on 'box'") != std::string::npos);
  CHECK(home.shelf->deleted.empty());
  CHECK(home.row(disk.id).state == "live");
  REQUIRE(home.release(box.id)->ok());
  CHECK(home.look().failed.empty());
  CHECK(home.row(disk.id).state == "released");
}

TEST_CASE("a volume that was deleted is made anew", "[lease]") {
  VolumeHome home;
  const lease::Lease disk = home.make();
  std::vector<std::string> volumes;
  lease::Manager::Event event = [&](const std::string& what, Value data) {
    if (what == "released" && !data["volume"].is_null()) volumes.push_back(data.text("name"));
  };
  REQUIRE(home.drive(home.manager->release(disk.id, event, {}))->ok());
  CHECK(volumes == std::vector<std::string>{"data"});  // the event says that it was one
  const lease::Lease again = home.make();
  CHECK(again.state == "live");
  CHECK(again.generation == 2);
  CHECK(again.machine_id != disk.machine_id);
}

TEST_CASE("an instance is rented in the zone of its volume, and stays there", "[lease]") {
  VolumeHome home;
  const lease::Lease disk = home.make(), box = home.box_with(disk);
  CHECK(box.request.offer.id == "box@b");  // the other zone's is cheaper
  lease::Replace elsewhere;
  elsewhere.id = box.id;
  elsewhere.generation = box.generation;
  elsewhere.options = Value().set("region", "moon");
  elsewhere.fence = store::Fence("r", 1);
  lease::Manager::Event quiet = [](const std::string&, Value) {};
  const auto refused = home.drive(home.manager->replace(std::move(elsewhere), quiet, {}));
  REQUIRE(refused);
  REQUIRE_FALSE(*refused);
  CHECK(refused->error().message.find("the rent asks for another place") != std::string::npos);
  CHECK(home.row(box.id).state == "live");
  CHECK(home.shelf->deleted.empty());
}

TEST_CASE("an instance with a volume of no region is rented where the options say", "[lease]") {
  VolumeHome home;
  home.shelf->place = "";
  const lease::Lease disk = home.make(), box = home.box_with(disk, Value().set("region", "r1"));
  CHECK(box.request.offer.region == "r1");
  const Value volumes = Value().set("data", disk.id);
  for (const char* region : {"", "r1"}) {
    Value options = Value().set("volumes", volumes);
    if (*region) options.set("region", region);
    const auto there = lease::placed(home.journal->reader(), options);
    REQUIRE(there);
    CHECK(there->text("provider") == "shelf");
    CHECK(there->text("region") == region);
  }
}

TEST_CASE("volumes: the zone of a machine that gets them", "[unit]") {
  const std::vector<provider::Mount> both{{"a", "r/vol-1", "l-1", "r-a"}, {"b", "r/vol-2", "l-2", "r-b"}};
  const std::vector<provider::Mount> one{both.front()};
  CHECK(provider::zone_with({}, "r-c").value() == "r-c");
  CHECK(provider::zone_with(one, "").value() == "r-a");
  const auto refused = provider::zone_with(both, "");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::capacity);
  CHECK(refused.error().message == "the volume vol-2 is in zone r-b, and not in r-a");
  CHECK_FALSE(provider::zone_with(one, "r-b"));
}

TEST_CASE("a volume is live once its provider can attach it", "[lease]") {
  VolumeHome home;
  const lease::Lease disk = home.make();
  CHECK(home.shelf->looks == 3);
  CHECK(disk.machine->state == MachineState::live);
  REQUIRE(home.release(disk.id)->ok());
  home.shelf->breaks = true;
  const auto broken = home.rent(home.volume());
  REQUIRE(broken);
  REQUIRE_FALSE(*broken);
  CHECK(broken->error().message.find("it broke") != std::string::npos);
  CHECK(home.row(disk.id).state == "creating");
  REQUIRE(home.release(disk.id)->ok());  // as the scope does
  CHECK(home.shelf->there.empty());
}

TEST_CASE("a provider whose machines have ended at once is not asked for ever", "[lease]") {
  VolumeHome home;
  home.shelf->stillborn = true;
  const auto refused = home.rent(home.volume());
  REQUIRE(refused);
  REQUIRE_FALSE(*refused);
  CHECK(refused->error().message.find("has ended already") != std::string::npos);
  CHECK(home.shelf->creates == 5);
}

TEST_CASE("a kept volume alone gives the reaper nothing to do", "[lease]") {
  VolumeHome home;
  const lease::Lease disk = home.make();
  CHECK_FALSE(home.manager->any_open().value());
  home.sql("UPDATE leases SET state='releasing'");
  CHECK(home.manager->any_open().value());
  home.sql("UPDATE leases SET state='live'");
  const lease::Lease box = home.box_with(disk);
  CHECK(home.manager->any_open().value());
}
