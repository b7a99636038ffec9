// Random histories of one lease, with deaths after journal writes and around provider calls: whatever happens, in the
// end nothing costs money, and no generation of a lease was ever made twice.
#include "tests/unit/lease/cloud.hpp"

using namespace rille;
using namespace rille::lease;
using namespace rille::lease::test;

namespace {

struct Seen {
  int deaths = 0, adopted = 0, second_generations = 0, failed_releases = 0, reaped = 0, revived = 0, refused = 0,
      at_once = 0, moved = 0, gone_on = 0;
};

class History {
 public:
  History(World& world, int seed, Seen& seen)
      : w_(world), random_(static_cast<std::uint32_t>(seed)), seen_(seen), run_("r" + std::to_string(seed)) {
    w_.cloud = Cloud();
    w_.cloud.traits.token_lifetime_ms = chance(50) ? 3'600'000 : 0;
    w_.cloud.traits.visibility_lag_ms = pick({0, 1'000, 120'000});
    w_.cloud.traits.create_timeout_ms = 60'000;
    w_.cloud.forgets = chance(50);
    w_.cloud.shutdown_us = pick({0, 40'000'000});
  }

  void play() {
    w_.run(run_);
    for (int i = 0, n = static_cast<int>(pick({1, 2, 4})); i < n; ++i) {
      act();
      one_each();
    }
    settle();
  }

  const std::string& run() const { return run_; }

 private:
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  std::int64_t pick(std::vector<std::int64_t> of) { return of[random_() % of.size()]; }

  void faults() {
    Cloud& c = w_.cloud;
    c.lose_replies = chance(30);
    c.land_late_us = c.lose_replies ? pick({0, 5'000'000, 50'000'000}) : 0;
    c.fail_creates = chance(15) ? static_cast<int>(pick({1, 2, 6})) : 0;
    c.refuse = chance(15) ? static_cast<int>(pick({1, 2})) : 0;
    c.fail_terminates = chance(20) ? static_cast<int>(pick({1, 3, 20})) : 0;
    c.fail_lists = chance(10);
    w_.die_at = chance(50) ? w_.places + 1 + static_cast<int>(random_() % 12) : -1;
  }

  // One thing that one process does, until it is done or dead.
  void act() {
    faults();
    if (chance(20)) w_.clock.us += pick({10'000'000, 45'000'000, 2'000'000'000});
    std::string name = chance(80) ? "a" : "b";
    int what = static_cast<int>(random_() % 14);
    if (what >= 10) {
      move(name);
    } else if (what < 6) {
      Value options{Value::Object{}};
      if (chance(50)) options.set("on_loss", "replace");
      auto r = w_.rent(w_.wanted(run_, name, std::move(options), epoch_));
      if (r && *r && (*r)->generation > 1) ++seen_.second_generations;
      if (r && *r && w_.cloud.made[(*r)->tag] == 1) ++seen_.adopted;
      if (r && !*r) ++seen_.refused;
    } else if (what < 8) {
      auto r = w_.release(Manager::lease_id(run_, "main/" + name + "#1"), store::Fence(run_, epoch_));
      if (r && !*r) ++seen_.failed_releases;
    } else if (what < 9) {
      (void)w_.reap(chance(50));
    } else {
      two(name);
    }
    if (w_.died) {
      ++seen_.deaths;
      w_.restart();
      ++epoch_;  // the next process takes the run
      w_.sql("UPDATE runs SET epoch=" + std::to_string(epoch_) + " WHERE id='" + run_ + "'");
    }
  }

  // The lease's machine is taken away, or not, and the runner goes on with another.
  void move(const std::string& name) {
    Replace wanted;
    wanted.id = Manager::lease_id(run_, "main/" + name + "#1");
    wanted.fence = store::Fence(run_, epoch_);
    std::optional<Lease> row = w_.manager->find(wanted.id).value();
    if (!row) return;
    wanted.generation = row->generation;
    bool left_so = !row->replacing.empty();  // by a process that died
    if (auto box = w_.cloud.boxes.find(row->machine_id); chance(60) && box != w_.cloud.boxes.end())
      if (!box->second.gone_us) box->second.gone_us = w_.clock.us;
    Manager::Event quiet = [](const std::string&, Value) {};
    auto r = w_.drive(w_.manager->replace(wanted, quiet, {}));
    if (!r || !*r) return;
    ++seen_.moved;
    seen_.gone_on += left_so;
    CHECK((*r)->state == "live");
    CHECK((*r)->generation > wanted.generation - left_so);
    CHECK(w_.row(wanted.id).replacing.empty());
  }

  // A runner, and at the same time a process that ends the lease, or a reaper that has found the run without a runner.
  void two(const std::string& name) {
    ++seen_.at_once;
    Manager::Event quiet = [](const std::string&, Value) {};
    if (chance(50)) {
      auto rent = w_.manager->acquire(w_.wanted(run_, name, Value(Value::Object{}), epoch_), quiet, {});
      auto end = w_.manager->release(Manager::lease_id(run_, "main/" + name + "#1"), quiet);
      if (chance(50)) w_.drive_both(std::move(rent), std::move(end));
      else w_.drive_both(std::move(end), std::move(rent));
      return;
    }
    w_.sql("UPDATE runs SET state='failed' WHERE id='" + run_ + "'");
    ReapRequest request;
    request.alive = w_.alive;
    auto reap = w_.manager->reaper().reap(request);
    w_.drive_both(std::move(reap), resume_later(name, static_cast<int>(random_() % 8)));
  }

  Task<Result<Lease>> resume_later(std::string name, int turns) {
    for (int i = 0; i < turns; ++i) (void)co_await w_.turn();
    ++epoch_;
    store::Journal::Write take = [run = run_, epoch = epoch_](store::Db& db) {
      return db.run("UPDATE runs SET state='running', epoch=? WHERE id=?", {epoch, run});
    };
    (void)co_await w_.journal->commit(std::move(take));
    Manager::Event quiet = [](const std::string&, Value) {};
    Acquire want = w_.wanted(run_, name, Value(Value::Object{}), epoch_);
    co_return co_await w_.manager->acquire(std::move(want), std::move(quiet), {});
  }

  // A lease is one machine: no generation is asked for while one before it may live.
  void one_each() {
    std::map<std::string, int> living;
    for (const auto& [id, box] : w_.cloud.boxes)
      if (!box.gone_us) ++living[box.tag.substr(0, box.tag.find("-g"))];
    for (const auto& [lease, n] : living) {
      INFO(lease);
      REQUIRE(n == 1);
    }
  }

  // The run is over, the faults are, too: one reaper, as `rille gc` would, again when the last requests have landed.
  void settle() {
    w_.cloud.lose_replies = w_.cloud.fail_creates = w_.cloud.refuse = w_.cloud.fail_terminates = 0;
    w_.cloud.fail_lists = 0;
    w_.die_at = -1;
    w_.sql("UPDATE runs SET state='failed' WHERE id='" + run_ + "'");
    for (int i = 0; i < 2; ++i) {
      auto report = w_.reap(false);
      REQUIRE(report);
      REQUIRE(report->ok());
      seen_.reaped += static_cast<int>((*report)->released.size());
      seen_.revived += static_cast<int>((*report)->revived.size());
      for (const Lease& l : (*report)->failed) FAIL(l.error);
      CHECK((*report)->unknown.empty());
      w_.clock.us += 300'000'000;
    }
  }

  World& w_;
  std::mt19937 random_;
  Seen& seen_;
  std::string run_;
  std::int64_t epoch_ = 1;
};

}  // namespace

TEST_CASE("in the end nothing costs money and no generation was made twice") {
  int first = 1, count = 500;  // 20,000 in unit.lease.long
  if (const char* one = std::getenv("RILLE_SEED")) first = std::atoi(one), count = 1;
  if (const char* many = std::getenv("RILLE_SEEDS")) count = std::atoi(many);
  auto w = std::make_unique<World>();
  Seen seen;
  for (int seed = first; seed < first + count; ++seed) {
    INFO("RILLE_SEED=" << seed);
    History history(*w, seed, seen);
    history.play();
    REQUIRE(w->billable() == 0);
    for (const auto& [tag, n] : w->cloud.made) {
      INFO(tag);
      REQUIRE(n <= 1);
    }
    std::vector<Lease> rows = w->manager->of_run(history.run()).value();
    for (const Lease& l : rows) REQUIRE(l.state == "released");
    w->sql(
        "DELETE FROM leases; DELETE FROM requests; DELETE FROM machines; DELETE FROM segments; DELETE FROM runs; "
        "DELETE FROM events");
  }
  if (count == 1) return;
  // That the rare branches were there at all.
  CHECK(seen.deaths > count / 10);
  CHECK(seen.adopted > count / 10);
  CHECK(seen.second_generations > count / 100);
  CHECK(seen.failed_releases > count / 100);
  CHECK(seen.reaped > count / 10);
  CHECK(seen.refused > count / 100);
  CHECK(seen.at_once > count / 20);
  CHECK(seen.moved > count / 40);
  CHECK(seen.gone_on > count / 500);
}
