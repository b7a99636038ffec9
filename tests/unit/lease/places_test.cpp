// Regions that do not answer: they hold back what is rented there, hide nothing of the others, and are named.
#include <algorithm>
#include <set>

#include "runtime/workflow/lease/tag.hpp"
#include "tests/unit/lease/cloud.hpp"

using namespace rille;
using namespace rille::lease;
using namespace rille::lease::test;

namespace {

// A provider with regions, some of them out of order.
class Regions final : public provider::Provider {
 public:
  struct Box {
    std::string region, tag;
  };
  std::map<std::string, Box> boxes;
  std::set<std::string> down;
  std::vector<std::string> asked;  // by list_in

  explicit Regions(Loop& loop) : loop_(loop) { traits_.dead_man = provider::DeadMan::provider; }
  const std::string& name() const override { return name_; }
  const provider::Traits& traits() const override { return traits_; }
  void show_late(std::int64_t ms) { traits_.visibility_lag_ms = ms; }

  Async<std::vector<provider::Offer>> offers(provider::OfferQuery query, CancelToken) override {
    std::vector<provider::Offer> out;
    for (const char* region : {"east", "west"}) {
      provider::Offer o;
      o.provider = name_;
      o.id = std::string(region) + "/box";
      o.region = region;
      o.price_micros_per_hour = 1'000'000;
      if (o.matches(query)) out.push_back(o);
    }
    co_return out;
  }
  Async<provider::Machine> create(provider::CreateRequest request, CancelToken) override {
    const std::string id = request.offer.region + "/m" + std::to_string(++next_);
    boxes[id] = {request.offer.region, request.tag};
    co_return machine(id);
  }
  Async<provider::Machine> describe(std::string id, CancelToken) override {
    if (down.contains(id.substr(0, 4))) co_return out_of_order(id.substr(0, 4));
    co_return machine(id);
  }
  Async<std::vector<provider::Machine>> list(std::string, CancelToken) override {
    co_return make_error(ErrorKind::internal, "nobody asks everywhere at the price of one");
  }
  Async<provider::Listing> list_in(std::string region, std::string tag, CancelToken) override {
    asked.push_back(region);
    provider::Listing out;
    for (const char* one : {"east", "west"}) {
      if (!region.empty() && region != one) continue;
      if (down.contains(one)) out.unasked.push_back({one, out_of_order(one)});
      for (const auto& [id, box] : boxes)
        if (box.region == one && !down.contains(one) && box.tag.starts_with(tag)) out.machines.push_back(machine(id));
    }
    co_return out;
  }
  Async<> terminate(std::string id, CancelToken) override {
    if (down.contains(id.substr(0, 4))) co_return out_of_order(id.substr(0, 4));
    boxes.erase(id);
    co_return success();
  }

 private:
  static Error out_of_order(const std::string& region) {
    return make_error(ErrorKind::network, "nobody answers in " + region);
  }
  provider::Machine machine(const std::string& id) const {
    provider::Machine m;
    m.id = id;
    const auto at = boxes.find(id);
    if (at == boxes.end()) return m;
    m.tag = at->second.tag;
    m.state = provider::MachineState::live;
    m.created_wall_us = loop_.clock().wall_us();
    return m;
  }
  Loop& loop_;
  std::string name_ = "regions";
  provider::Traits traits_;
  int next_ = 0;
};

struct Place : World {
  Regions* regions = nullptr;
  Place() {
    auto made = std::make_unique<Regions>(*loop);
    regions = made.get();
    REQUIRE(registry.add(std::move(made)).ok());
    run("r");
  }
  Lease rented_in(const std::string& region) {
    auto r = rent(wanted("r", region, Value().set("provider", "regions").set("region", region)));
    REQUIRE(r);
    if (!*r) FAIL((*r).error().summary());
    return **r;
  }
  // The events of a run's last look.
  std::vector<std::pair<std::string, Value>> swept(const std::string& of) {
    std::vector<std::pair<std::string, Value>> told;
    Manager::Event event = [&told](const std::string& what, Value data) { told.emplace_back(what, std::move(data)); };
    const auto done = drive(manager->reaper().sweep(of, event));
    REQUIRE(done);
    if (!*done) FAIL((*done).error().summary());
    return told;
  }
};

constexpr const char* orphan = "rille-0123456789ab-nobody-g1-x1700000000";  // whose time is over

}  // namespace

TEST_CASE("a lease is released in its own region, even if other regions fail") {
  Place w;
  const Lease west = w.rented_in("west"), east = w.rented_in("east");
  w.regions->down = {"east"};
  w.regions->asked.clear();
  REQUIRE(w.release(west.id)->ok());
  CHECK(w.row(west.id).state == "released");
  CHECK(w.regions->boxes.size() == 1);
  CHECK(w.regions->asked == std::vector<std::string>{"west"});

  CHECK_FALSE(w.release(east.id)->ok());
  CHECK(w.row(east.id).state == "releasing");
  w.regions->down.clear();
  REQUIRE(w.release(east.id)->ok());
  CHECK(w.regions->boxes.empty());
}

TEST_CASE("the reaper ends what it sees, and names the regions that it could not ask") {
  Place w;
  const Lease west = w.rented_in("west"), east = w.rented_in("east");
  w.regions->boxes["west/orphan"] = {"west", orphan};
  w.regions->boxes["east/orphan"] = {"east", orphan};
  w.sql("UPDATE runs SET state='done'");
  w.regions->down = {"east"};
  auto report = w.reap();
  REQUIRE(report->ok());
  CHECK((*report)->released.size() == 2);
  REQUIRE((*report)->failed.size() == 1);
  CHECK((*report)->failed[0].id == east.id);
  CHECK(w.row(west.id).state == "released");
  REQUIRE((*report)->errors.size() == 1);
  CHECK((*report)->errors[0].provider == "regions");
  CHECK((*report)->errors[0].message == "region east: nobody answers in east");
  CHECK(w.regions->boxes.size() == 2);

  w.regions->down.clear();
  auto again = w.reap();
  REQUIRE(again->ok());
  CHECK((*again)->released.size() == 2);
  CHECK((*again)->errors.empty());
  CHECK(w.regions->boxes.empty());
}

TEST_CASE("what a region that is silent may have is not said to be missing") {
  Place w;
  const Lease west = w.rented_in("west"), east = w.rented_in("east");
  w.clock.us += 3'600'000'000;
  w.regions->boxes.clear();
  w.regions->boxes["west/x"] = {"west", "rille-0123456789ab-with no end"};
  w.regions->down = {"east"};
  auto survey = w.drive(w.manager->reaper().survey({}));
  REQUIRE(survey);
  REQUIRE(survey->ok());
  REQUIRE((*survey)->unseen.size() == 1);
  CHECK((*survey)->unseen[0].id == west.id);
  REQUIRE((*survey)->errors.size() == 1);
  CHECK((*survey)->errors[0].message == "region east: nobody answers in east");
  REQUIRE((*survey)->machines.size() == 1);  // ours by its tag's prefix, but of no lease
  CHECK((*survey)->machines[0].account == Account::unknown);

  w.regions->down.clear();
  survey = w.drive(w.manager->reaper().survey({}));
  REQUIRE(survey->ok());
  CHECK((*survey)->unseen.size() == 2);
}

namespace {

// Answers when all of its kind have been asked.
class Waits final : public provider::Provider {
 public:
  Waits(World& w, std::string name, int& asked) : w_(w), name_(std::move(name)), asked_(asked) {}
  const std::string& name() const override { return name_; }
  const provider::Traits& traits() const override { return traits_; }
  Async<std::vector<provider::Offer>> offers(provider::OfferQuery, CancelToken) override {
    co_return std::vector<provider::Offer>();
  }
  Async<provider::Machine> create(provider::CreateRequest, CancelToken) override { co_return nothing(); }
  Async<provider::Machine> describe(std::string, CancelToken) override { co_return nothing(); }
  Async<std::vector<provider::Machine>> list(std::string, CancelToken token) override {
    for (++asked_; asked_ < 3;) {
      if (token.cancelled()) co_return token.reason();
      RILLE_CO_CHECK(co_await w_.turn());
    }
    co_return std::vector<provider::Machine>();
  }
  Async<> terminate(std::string, CancelToken) override { co_return success(); }

 private:
  static Error nothing() { return make_error(ErrorKind::capacity, "nothing here"); }
  World& w_;
  std::string name_;
  int& asked_;
  provider::Traits traits_;
};

}  // namespace

TEST_CASE("the reaper asks all providers at once") {
  World w;
  int asked = 0;
  for (const char* name : {"one", "two", "three"})
    REQUIRE(w.registry.add(std::make_unique<Waits>(w, name, asked)).ok());
  auto report = w.reap();
  REQUIRE(report->ok());
  CHECK((*report)->errors.empty());
  CHECK(asked == 3);
}

TEST_CASE(
    "the last look of a run ends machines with its tags that belong to no lease, only in regions where it has rented") {
  Place w;
  w.run("other");
  const Lease mine = w.rented_in("west");
  const auto theirs = w.rent(w.wanted("other", "box", Value().set("provider", "regions").set("region", "west")));
  REQUIRE(theirs->ok());
  REQUIRE(w.release(mine.id)->ok());
  REQUIRE(w.swept("r").empty());
  w.regions->asked.clear();
  REQUIRE(w.swept("r").empty());
  CHECK(w.regions->asked == std::vector<std::string>{"west"});  // one list

  std::string older = mine.tag;
  older.replace(older.find("-g1-"), 4, "-g2-");
  w.sql("UPDATE leases SET generation=2, tag='" + older + "' WHERE id='" + mine.id + "'");  // as if it were replaced
  w.regions->boxes["west/older"] = {"west", mine.tag};
  w.regions->boxes["west/settled"] = {"west", older};
  w.regions->boxes["west/second"] = {"west", (*theirs)->tag};  // another run's, whose own affair it is
  w.regions->boxes["west/orphan"] = {"west", orphan};
  w.regions->boxes["east/late"] = {"east", mine.tag};  // where this run has asked for nothing
  w.regions->asked.clear();
  const auto told = w.swept("r");
  REQUIRE(told.size() == 2);
  std::set<std::string> ended;
  for (const auto& [what, data] : told) {
    CHECK(what == "stray");
    CHECK(data.text("provider") == "regions");
    CHECK(data.text("name") == "west");
    ended.insert(data.text("machine"));
  }
  CHECK(ended == std::set<std::string>{"west/older", "west/settled"});
  CHECK(w.regions->boxes.size() == 4);
  CHECK(w.row(mine.id).state == "released");
  CHECK(std::count(w.regions->asked.begin(), w.regions->asked.end(), "east") == 0);
  CHECK(w.swept("r").empty());
}

TEST_CASE("the last look of a run: a region that does not answer is reported, and the run still succeeds") {
  Place w;
  const Lease west = w.rented_in("west");
  w.run("idle");
  REQUIRE(w.release(west.id)->ok());
  w.regions->boxes["west/late"] = {"west", west.tag};
  w.regions->down = {"west"};
  const auto told = w.swept("r");
  REQUIRE(told.size() == 1);
  CHECK(told[0].first == "warning");
  CHECK_THAT(told[0].second.text("message"), Catch::Contains("regions: region west: nobody answers in west"));
  CHECK_THAT(told[0].second.text("message"), Catch::Contains("rille gc"));
  CHECK(w.row(west.id).state == "released");
  w.regions->down.clear();
  REQUIRE(w.reap()->ok());  // which looks there
  CHECK(w.regions->boxes.empty());

  w.regions->asked.clear();
  CHECK(w.swept("idle").empty());
  CHECK(w.regions->asked.empty());  // it has rented nothing: no region is asked
}

TEST_CASE(
    "the last look of a run, by another process that has only the rows; a list from before the end does not count") {
  Place w;
  w.regions->show_late(30'000);
  const Lease west = w.rented_in("west");
  const std::string id = west.machine_id;
  REQUIRE(w.release(west.id)->ok());
  w.restart();
  w.regions->boxes[id] = {"west", west.tag};  // still shown
  CHECK(w.swept("r").empty());
  CHECK(w.regions->boxes.size() == 1);
  w.clock.us += 30'000'000;
  const auto told = w.swept("r");
  REQUIRE(told.size() == 1);
  CHECK(told[0].second.text("machine") == id);
  CHECK(w.regions->boxes.empty());
}
