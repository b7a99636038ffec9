// Leases on a disk that fails. Whatever the disk does, each machine that lives has a row that says so, and in the end
// nothing costs money.
#include <cstdlib>

#include "tests/fault/storage/faulty_disk.hpp"
#include "tests/unit/lease/cloud.hpp"

using namespace rille;
using namespace rille::lease;
using namespace rille::lease::test;
using rille::test::FaultyDisk;

namespace {

struct Seen {
  int cuts = 0, errors = 0, machines_after_cut = 0, rented = 0, released_blind = 0;
};

class Life {
 public:
  Life(int seed, Seen& seen) : seed_(seed), random_(static_cast<std::uint32_t>(seed)), seen_(seen) {}

  void play() {
    w_.dead = [this] { return !disk_.powered(); };
    w_.cloud.traits.token_lifetime_ms = random_() % 2 ? 3'600'000 : 0;
    w_.cloud.traits.visibility_lag_ms = random_() % 2 ? 1'000 : 0;
    w_.cloud.traits.create_timeout_ms = 60'000;
    w_.run("r");
    for (int i = 0; i < 4; ++i) {
      auto fault = static_cast<FaultyDisk::Fault>(random_() % 3);
      w_.cloud.lose_replies = random_() % 4 == 0;
      disk_.fail_at(1 + static_cast<int>(random_() % 40), fault, 1 + static_cast<int>(random_() % 6));
      act();
      if (!disk_.powered()) reboot();
      disk_.heal();
    }
    settle();
  }

 private:
  void act() {
    std::string name = random_() % 4 ? "a" : "b", id = Manager::lease_id("r", "main/" + name + "#1");
    if (random_() % 3) {
      auto r = w_.rent(w_.wanted("r", name, Value(Value::Object{}), epoch_));
      if (r && *r) ++seen_.rented;
      else if (r) ++seen_.errors;
    } else if (w_.manager->find(id).value()) {
      int before = w_.billable();
      auto r = w_.release(id, store::Fence("r", epoch_));
      if (r && !*r && w_.billable() < before) ++seen_.released_blind;
    }
  }

  // The machine starts again: the disk has what it kept, the cloud has gone on.
  void reboot() {
    ++seen_.cuts;
    w_.loop->abandon_tasks();
    w_.manager.reset();
    w_.journal.reset();
    disk_.settle(random_());
    auto opened = store::Journal::open(*w_.loop, w_.dir.path + "/journal.db");
    if (!opened) FAIL(opened.error().summary());
    w_.journal = std::move(opened).value();
    REQUIRE(w_.journal->check().ok());
    w_.restart();
    w_.sql("UPDATE runs SET epoch=" + std::to_string(++epoch_) + " WHERE id='r'");
    remembered();
  }

  std::vector<Lease> rows() { return w_.manager->of_run("r").value(); }

  // What lives is in the journal, by its tag, as something that may live.
  void remembered() {
    for (const auto& [id, box] : w_.cloud.boxes) {
      if (!w_.cloud.alive(id, w_.clock.us)) continue;
      ++seen_.machines_after_cut;
      bool found = false;
      std::string there;
      for (const Lease& l : rows()) {
        there += l.tag + " " + l.state + " " + l.error + "; ";
        found = found || (l.tag == box.tag && l.state != "intent" && l.state != "released");
      }
      INFO(box.tag << " lives, the journal has: " << there);
      REQUIRE(found);
    }
  }

  void settle() {
    w_.cloud.lose_replies = 0;
    w_.sql("UPDATE runs SET state='failed' WHERE id='r'");
    for (int i = 0; i < 2; ++i) {
      auto report = w_.reap(false);
      REQUIRE(report);
      REQUIRE(report->ok());
      CHECK((*report)->failed.empty());
      CHECK((*report)->unknown.empty());
      w_.clock.us += 300'000'000;
    }
    CHECK(w_.billable() == 0);
    for (const auto& [tag, n] : w_.cloud.made) CHECK(n <= 1);
    for (const Lease& l : rows()) CHECK(l.state == "released");
  }

  int seed_;
  std::mt19937 random_;
  Seen& seen_;
  FaultyDisk disk_;  // before the world that writes on it
  World w_;
  std::int64_t epoch_ = 1;
};

}  // namespace

TEST_CASE("whatever the disk does, a machine that lives is in the journal, and all are released") {
  int first = 1, count = 200;
  if (const char* one = std::getenv("RILLE_SEED")) first = std::atoi(one), count = 1;
  if (const char* many = std::getenv("RILLE_SEEDS")) count = std::atoi(many);
  Seen seen;
  for (int seed = first; seed < first + count; ++seed) {
    INFO("RILLE_SEED=" << seed);
    Life(seed, seen).play();
  }
  if (count == 1) return;
  CHECK(seen.cuts > count / 4);
  CHECK(seen.errors > count / 10);
  CHECK(seen.machines_after_cut > count / 10);
  CHECK(seen.rented > count / 4);
  CHECK(seen.released_blind > 0);
  WARN(seen.cuts << " power cuts, " << seen.errors << " rents refused by the disk, " << seen.machines_after_cut
                 << " machines found after a cut, " << seen.released_blind << " ended although the disk was not well");
}
