// Leftovers of a machine that cost nothing: they are removed after the machine, no process waits for them, no row
// counts them, and where their removal failed the reaper tries again.
#include "runtime/workflow/provider/left_over.hpp"

#include "tests/unit/lease/cloud.hpp"

using namespace rille;
using namespace rille::lease;
using namespace rille::lease::test;

namespace {

// Makes a group for each machine, which cannot go while the machine is there.
class Grouping final : public provider::Provider {
 public:
  Grouping() { traits_.dead_man = provider::DeadMan::provider; }
  const std::string& name() const override { return name_; }
  const provider::Traits& traits() const override { return traits_; }
  Async<std::vector<provider::Offer>> offers(provider::OfferQuery, CancelToken) override {
    provider::Offer o;
    o.provider = name_;
    o.id = "a100";
    o.gpu = "A100";
    o.gpu_count = 1;
    o.gpu_memory_bytes = 80LL << 30;
    o.price_micros_per_hour = 1'000'000;
    co_return std::vector<provider::Offer>{o};
  }
  Async<provider::Machine> create(provider::CreateRequest request, CancelToken) override {
    provider::Machine m;
    m.id = "i-" + request.tag;
    m.tag = request.tag;
    m.state = provider::MachineState::live;
    machines[m.id] = m;
    groups["sg-" + request.tag] = request.tag;
    co_return m;
  }
  Async<provider::Machine> describe(std::string id, CancelToken) override {
    provider::Machine m;
    m.id = id;
    if (const auto at = machines.find(id); at != machines.end()) co_return at->second;
    if (id.starts_with("i-")) m.tag = id.substr(2);
    co_return m;
  }
  Async<std::vector<provider::Machine>> list(std::string tag, CancelToken) override {
    std::vector<provider::Machine> out;
    for (const auto& [id, m] : machines)
      if (m.tag.starts_with(tag)) out.push_back(m);
    for (const auto& [id, of] : groups)
      if (of.starts_with(tag) && !machines.contains("i-" + of)) out.push_back(provider::free_left_over(id, of));
    co_return out;
  }
  Async<> terminate(std::string id, CancelToken) override {
    if (id.starts_with("sg-")) {
      ++removals;
      if (held > 0 && held--) co_return make_error(ErrorKind::state, "resource has a dependent object");
      groups.erase(id);
    } else {
      machines.erase(id);
    }
    co_return success();
  }

  std::map<std::string, provider::Machine> machines;
  std::map<std::string, std::string> groups;
  int held = 0, removals = 0;  // how often a removal is refused yet

 private:
  std::string name_ = "grouping";
  provider::Traits traits_;
};

struct Yard : World {
  Grouping* from = nullptr;
  const std::string id = Manager::lease_id("r", "main/box#1");

  Yard() {
    run("r");
    auto made = std::make_unique<Grouping>();
    from = made.get();
    REQUIRE(registry.add(std::move(made)).ok());
    const auto got = rent(wanted("r", "box", Value::from_json(R"({"gpu": "A100"})").value()));
    REQUIRE(got);
    REQUIRE(got->ok());
    REQUIRE(from->groups.size() == 1);
  }
  void let_go() {
    const auto released = release(id);
    REQUIRE(released);
    REQUIRE(released->ok());
    CHECK(row(id).state == "released");
    CHECK(from->machines.empty());
  }
};

}  // namespace

TEST_CASE("a free left-over goes with its lease, and waits for its machine to let go") {
  Yard y;
  y.from->held = 1;
  y.let_go();
  CHECK(y.from->groups.empty());
  CHECK(y.from->removals == 2);
}

TEST_CASE("a lease is released though its left-over stays, and the reaper removes that without counting it") {
  Yard y;
  y.from->held = 1'000;
  y.let_go();
  CHECK(y.from->groups.size() == 1);
  const Micros cost = y.row(y.id).spent_micros(y.clock.us);
  const auto survey = y.drive(y.manager->reaper().survey({}));
  REQUIRE(survey);
  CHECK(survey->value().machines.empty());

  const auto failed = y.reap();  // still held
  REQUIRE(failed);
  CHECK(failed->value().failed.empty());
  CHECK(y.from->groups.size() == 1);
  y.from->held = 0;
  const auto reaped = y.reap();
  REQUIRE(reaped);
  CHECK(reaped->value().released.empty());
  CHECK(reaped->value().revived.empty());
  CHECK(y.from->groups.empty());
  CHECK(y.row(y.id).state == "released");
  CHECK(y.row(y.id).spent_micros(y.clock.us) == cost);
}

TEST_CASE("a left-over whose lease goes on is left alone, and one of another home until its tag is over") {
  Yard y;
  const std::string mine = y.row(y.id).tag, others = "rille-0123456789ab-fedcba9876543210-g1-x";
  y.from->machines.clear();  // not shown for a moment
  y.alive = [](const std::string&) { return true; };
  y.from->groups["sg-late"] = others + std::to_string(y.clock.us / 1'000'000 + 3'600);
  y.from->groups["sg-over"] = others + std::to_string(y.clock.us / 1'000'000 - 3'600);
  const auto reaped = y.reap(true);
  REQUIRE(reaped);
  CHECK(reaped->value().unknown.empty());
  CHECK(y.from->groups.contains("sg-" + mine));
  CHECK(y.from->groups.contains("sg-late"));
  CHECK_FALSE(y.from->groups.contains("sg-over"));
}
