// Whose the machine of a lease is, and by whose clock: keys of another account prove nothing, a wall clock that is set
// forward proves nothing earlier, and a machine's end is one by its provider's clock.
#include "runtime/workflow/provider/owner.hpp"

#include "runtime/workflow/provider/clocked.hpp"
#include "runtime/workflow/provider/rearm.hpp"
#include "tests/unit/lease/cloud.hpp"

using namespace rille;
using namespace rille::lease;

namespace {

struct TwoClocks final : Clock {
  std::int64_t us = 1'800'000'000'000'000, stepped_us = 0;
  std::int64_t wall_us() const override { return us + stepped_us; }
  std::int64_t monotonic_ns() const override { return us * 1000; }
};

// Accounts with machines of their own; keys see those of `account`.
class Bank final : public provider::Provider,
                   public provider::Owned,
                   public provider::Clocked,
                   public provider::Rearmed {
 public:
  explicit Bank(const TwoClocks& clock) : clock_(clock) {
    traits_.dead_man = provider::DeadMan::provider;
    traits_.create_timeout_ms = 60'000;
    traits_.visibility_lag_ms = 60'000;
  }
  const std::string& name() const override { return name_; }
  const provider::Traits& traits() const override { return traits_; }
  Async<std::vector<provider::Offer>> offers(provider::OfferQuery, CancelToken) override {
    provider::Offer o;
    o.provider = name_;
    o.id = "small";
    o.price_micros_per_hour = 1'000'000;
    co_return std::vector<provider::Offer>{o};
  }
  Async<provider::Machine> create(provider::CreateRequest request, CancelToken) override {
    last = request;
    const std::string id = "m-" + std::to_string(++made);
    accounts[account][id] = {request.tag, clock_.us + lag_us};
    if (on_create) on_create();
    if (lose_replies > 0 && lose_replies--) co_return make_error(ErrorKind::network, "connection reset by peer");
    co_return machine(id, request.tag);
  }
  Async<provider::Machine> describe(std::string id, CancelToken) override {
    const auto& mine = accounts[account];
    const auto at = mine.find(id);
    provider::Machine gone;
    gone.id = id;
    if (at == mine.end() || clock_.us < at->second.shown_us) co_return gone;
    co_return machine(id, at->second.tag);
  }
  Async<std::vector<provider::Machine>> list(std::string tag, CancelToken) override {
    if (deaf) co_return make_error(ErrorKind::network, "connection reset by peer");
    std::vector<provider::Machine> out;
    for (const auto& [id, box] : accounts[account])
      if (box.tag.starts_with(tag) && clock_.us >= box.shown_us) out.push_back(machine(id, box.tag));
    co_return out;
  }
  Async<> terminate(std::string id, CancelToken) override {
    auto& mine = accounts[account];
    const auto at = mine.find(id);
    if (at == mine.end() || clock_.us < at->second.shown_us) co_return success();
    if (lingers) lingers = false;  // it is shown once more
    else mine.erase(at);
    co_return success();
  }
  Async<std::string> owner(std::string, CancelToken) override {
    ++asked;
    if (silent) co_return make_error(ErrorKind::network, "STS does not answer");
    co_return account;
  }
  std::int64_t skew_us() const override { return ahead_us; }
  Async<> set_end(std::string id, std::int64_t expires_wall_us, CancelToken) override {
    if (!rearms) co_return provider::lacks(name_, "way to set a machine's end anew");
    ends[id] = expires_wall_us;
    co_return success();
  }

  struct Box {
    std::string tag;
    std::int64_t shown_us = 0;
  };
  std::string account = "account 1";
  std::map<std::string, std::map<std::string, Box>> accounts;
  std::map<std::string, std::int64_t> ends;
  provider::CreateRequest last;
  int made = 0, asked = 0, lose_replies = 0;
  std::int64_t lag_us = 0, ahead_us = 0;
  bool lingers = false, silent = false, deaf = false, rearms = true;
  std::function<void()> on_create;

 private:
  static provider::Machine machine(const std::string& id, const std::string& tag) {
    provider::Machine m;
    m.id = id;
    m.tag = tag;
    m.state = provider::MachineState::live;
    return m;
  }
  const TwoClocks& clock_;
  std::string name_ = "bank";
  provider::Traits traits_;
};

struct Home {
  test::TempDir dir;
  TwoClocks clock;
  std::unique_ptr<Loop> loop = Loop::create(clock).value();
  std::unique_ptr<store::Journal> journal = store::Journal::open(*loop, dir.path + "/journal.db").value();
  provider::Registry registry;
  Bank* bank = nullptr;
  std::unique_ptr<Manager> manager;
  const std::string id = Manager::lease_id("r", "main/box#1");

  Home() {
    auto made = std::make_unique<Bank>(clock);
    bank = made.get();
    (void)registry.add(std::move(made));
    store::Journal::Write run = [](store::Db& db) {
      return db.script(
          "INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid) "
          "VALUES('r','t','durable','running',1,'{}',0,0,'h',1)");
    };
    REQUIRE(run_blocking(*loop, journal->commit(std::move(run))).ok());
    restart();
  }
  // The next process.
  void restart() {
    Hooks hooks;
    hooks.pause = [this](std::int64_t ms, CancelToken token) { return pass(ms, std::move(token)); };
    manager = std::make_unique<Manager>(*loop, *journal, registry, "0123456789ab", hooks);
  }
  Async<> pass(std::int64_t ms, CancelToken) {
    clock.us += ms * 1000;
    co_return success();
  }
  Result<Lease> rent() {
    Acquire a;
    a.key = "main/box#1";
    a.name = "box";
    a.options = Value().set("ttl", "24h");
    a.fence = store::Fence("r", 1);
    Manager::Event quiet = [](const std::string&, Value) {};
    return run_blocking(*loop, manager->acquire(std::move(a), quiet, {}));
  }
  Result<> release() {
    Manager::Event quiet = [](const std::string&, Value) {};
    return run_blocking(*loop, manager->release(id, quiet, {}));
  }
  Lease row() { return manager->find(id).value().value(); }
  void later() { clock.us += 600'000'000; }
};

}  // namespace

TEST_CASE("keys of another account prove nothing of a machine", "[lease]") {
  Home home;
  REQUIRE(home.rent());
  home.restart();
  home.later();
  home.bank->account = "account 2";

  const Result<provider::Machine> seen = run_blocking(*home.loop, home.manager->describe(home.row(), {}));
  REQUIRE_FALSE(seen);
  CHECK(seen.error().kind == ErrorKind::auth);
  CHECK(seen.error().code == "other_account");
  ReapRequest request;
  request.alive = [](const std::string&) { return false; };
  const Result<ReapReport> report = run_blocking(*home.loop, home.manager->reaper().reap(std::move(request)));
  REQUIRE(report);
  CHECK(report->released.empty());
  CHECK(report->held.size() == 1);
  CHECK(report->errors.size() == 1);
  CHECK(home.row().state == "live");
  const Result<Survey> survey = run_blocking(*home.loop, home.manager->reaper().survey({}));
  REQUIRE(survey);
  CHECK(survey->unseen.empty());
  CHECK(survey->errors.size() == 1);

  const Result<> released = home.release();
  REQUIRE_FALSE(released);
  CHECK(released.error().kind == ErrorKind::auth);
  CHECK(released.error().hint.find("account 1") != std::string::npos);
  CHECK(home.row().state == "releasing");
  CHECK(home.bank->accounts["account 1"].size() == 1);

  home.bank->account = "account 1";
  CHECK(home.release());
  CHECK(home.bank->accounts["account 1"].empty());
  CHECK(home.row().state == "released");
}

TEST_CASE("a create whose answer was lost is not settled with another account's keys", "[lease]") {
  Home home;
  home.bank->lose_replies = 1;
  home.bank->deaf = true;
  CHECK_FALSE(home.rent());
  REQUIRE(home.row().state == "creating");
  const int made = home.bank->made;
  home.restart();
  home.later();
  home.bank->deaf = false;
  home.bank->account = "account 2";
  const Result<Lease> resumed = home.rent();
  REQUIRE_FALSE(resumed);
  CHECK(resumed.error().code == "other_account");
  CHECK(home.bank->made == made);
  CHECK(home.row().state == "creating");
  home.bank->account = "account 1";
  REQUIRE(home.rent());
  CHECK(home.row().state == "live");
  CHECK(home.bank->made == made);
}

TEST_CASE("whose the keys are is asked for only where it decides", "[lease]") {
  Home home;
  REQUIRE(home.rent());
  home.restart();
  home.later();
  const int asked = home.bank->asked;
  home.bank->silent = true;
  SECTION("not for a machine that they show") {
    home.bank->lingers = true;
    CHECK(home.release());
    CHECK(home.bank->asked == asked);
  }
  SECTION("where it is not told, nothing is concluded") {
    home.bank->accounts.clear();
    CHECK_FALSE(home.release());
    CHECK(home.row().state == "releasing");
    home.bank->silent = false;
    CHECK(home.release());
  }
}

TEST_CASE("a lease without a recorded owner ends as before", "[lease]") {
  Home home;
  home.bank->silent = true;
  REQUIRE(home.rent());
  home.bank->silent = false;
  home.restart();
  home.later();
  home.bank->account = "account 2";
  CHECK(home.release());
  CHECK(home.row().state == "released");
}

TEST_CASE("a wall clock that is set forward brings no proof nearer", "[lease]") {
  Home home;
  home.bank->lag_us = 90'000'000;
  SECTION("between a create and the look for its machine") {
    home.bank->lose_replies = 1;
    home.bank->on_create = [&home] { home.clock.stepped_us = 3'600'000'000; };
    REQUIRE(home.rent());
    CHECK(home.bank->made == 1);
  }
  SECTION("between a rent and its release") {
    home.bank->lag_us = 30'000'000;
    REQUIRE(home.rent());
    home.clock.stepped_us = 3'600'000'000;
    CHECK(home.release());
    CHECK(home.bank->accounts["account 1"].empty());
  }
}

TEST_CASE("a machine ends by its provider's clock", "[lease]") {
  Home home;
  home.bank->ahead_us = GENERATE(as<std::int64_t>{}, 0, 3'600'000'000, -3'600'000'000);
  const Result<Lease> lease = home.rent();
  REQUIRE(lease);
  CHECK(home.bank->last.expires_wall_us == lease->expires_us + home.bank->ahead_us);
  CHECK(home.row().request.expires_wall_us == home.bank->last.expires_wall_us);
}

TEST_CASE("the switch of a lease that is detached for less is set anew, where it can be", "[lease]") {
  Home home;
  home.bank->ahead_us = 3'600'000'000;
  home.bank->rearms = GENERATE(true, false);
  const Result<Lease> lease = home.rent();
  REQUIRE(lease);
  const std::int64_t armed_us = lease->request.expires_wall_us;
  REQUIRE(run_blocking(*home.loop, home.manager->detach(home.id, 3'600'000, {})));
  const std::int64_t end_us = home.row().expires_us;
  CHECK(end_us == home.clock.wall_us() + 3'600'000'000);
  if (home.bank->rearms) {
    CHECK(home.bank->ends[lease->machine_id] == end_us + home.bank->ahead_us);
    CHECK(home.row().request.expires_wall_us == end_us + home.bank->ahead_us);
  } else {
    CHECK(home.row().request.expires_wall_us == armed_us);
  }
}
