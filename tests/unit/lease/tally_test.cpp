// The kept sums equal a new count, whichever process wrote rows in the meantime.
#include "runtime/workflow/lease/budget.hpp"
#include "tests/unit/lease/cloud.hpp"

using namespace rille;
using namespace rille::lease;
using namespace rille::lease::test;

namespace {

class Books {
 public:
  explicit Books(int seed) : random_(static_cast<std::uint32_t>(seed)) {
    w_.run("parent", "running", 900'000'000);
    w_.run("r", "running", 400'000'000);
    w_.run("other", "running", 300'000'000);
    w_.sql("UPDATE runs SET parent='parent' WHERE id='r'; UPDATE runs SET tag='eval'");
    w_.sql(
        "INSERT INTO budgets(scope,limit_micros,alert_percent,alert_url) VALUES('month',800000000,80,''),"
        "('tag:eval',700000000,80,'')");
    other_process_ = store::Db::open(w_.dir.path + "/journal.db", false).value();
  }

  void play(int steps) {
    for (int i = 0; i < steps; ++i) {
      INFO("step " << i);
      act();
      compare("r");
      compare("other");
    }
  }

  int rented = 0, rolled_back = 0, others = 0, resized = 0, unsettled = 0;

 private:
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }

  void act() {
    switch (random_() % 11) {
      case 0:
      case 1:
      case 2:
      case 3: return rent();
      case 4: return release();
      case 5: return reprice();
      case 6: w_.clock.us += static_cast<std::int64_t>(random_() % 3) * hour_us; return;
      case 7: return elsewhere();
      case 8: return roll_back();
      case 9: return resize();
      default: return change();
    }
  }

  void rent() {
    Value options = Value().set("ttl", std::to_string(1 + random_() % 5) + "h");
    auto r = w_.rent(w_.wanted(chance(70) ? "r" : "other", "box" + std::to_string(++n_), std::move(options)));
    REQUIRE(r);
    if (!*r) return;
    ++rented;
    ids_.push_back((*r)->id);
  }
  std::string any() { return ids_.empty() ? std::string("none") : ids_[random_() % ids_.size()]; }

  void release() {
    if (!ids_.empty()) CHECK(w_.release(any())->ok());
  }

  void reprice() {
    if (ids_.empty()) return;
    Lease l = w_.row(any());
    store::Journal::Write move = [&](store::Db& db) { return record_prices(db, l, {{w_.clock.us, 3'000'000}}, false); };
    REQUIRE(run_blocking(*w_.loop, w_.journal->commit(move)));
  }

  // Some are never settled, so that both prices count on.
  void resize() {
    if (ids_.empty()) return;
    const std::string id = any();
    w_.cloud.strand_resizes = chance(40) ? 100 : 0;
    const auto r = w_.resize(id, Value().set("type", chance(70) ? "large" : "small"));
    REQUIRE(r);
    resized += r->ok();
    unsettled += w_.row(id).state == "resizing";
    w_.cloud.strand_resizes = 0;
  }

  // Another process writes the same file.
  void elsewhere() {
    const char* const sql = chance(50) ? "UPDATE leases SET reserved_micros=reserved_micros+7 WHERE id=?"
                                       : "UPDATE leases SET generation=generation+1 WHERE id=?";
    const std::string id = any();
    REQUIRE(other_process_->run(sql, {id}));
  }

  // Counts in the middle of a transaction that comes to nothing.
  void roll_back() {
    ++rolled_back;
    const char* const sql =
        chance(50) ? "UPDATE leases SET reserved_micros=reserved_micros+11 WHERE id=?"
                   : "INSERT INTO leases SELECT NULL,'copy',run,name,scope,1,provider,'live',token,tag,machine,"
                     "machine_id,price_micros_per_hour,created_us,send_by_us,live_us,expires_us,NULL,detached,error,"
                     "cap_micros_per_hour,disk_micros_per_hour,reserved_micros,replacing,1 FROM leases WHERE id=?";
    store::Journal::Write fail = [this, id = any(), sql](store::Db& db) -> Result<> {
      RILLE_CHECK(db.run(sql, {id}));
      RILLE_CHECK(count_money(db, "r", "", w_.clock.us, true, Count::kept));
      return make_error(ErrorKind::io, "no");
    };
    REQUIRE_FALSE(run_blocking(*w_.loop, w_.journal->commit(fail)));
  }

  void change() {
    const char* const all[] = {"UPDATE runs SET tag='' WHERE id='other'",
                               "UPDATE runs SET tag='eval' WHERE id='other'",
                               "UPDATE runs SET parent='parent' WHERE id='other'",
                               "UPDATE runs SET parent='' WHERE id='other'",
                               "UPDATE leases SET expires_us=expires_us-1800000000 WHERE run='r'",
                               "UPDATE leases SET cap_micros_per_hour=cap_micros_per_hour/2 WHERE run='other'"};
    w_.sql(all[random_() % std::size(all)]);
  }

  void compare(const std::string& run) {
    std::vector<Money> kept, anew;
    store::Journal::Write count = [&](store::Db& db) -> Result<> {
      RILLE_TRY(kept, count_money(db, run, "", w_.clock.us, true, Count::kept));
      RILLE_TRY(anew, count_money(db, run, "", w_.clock.us, true, Count::anew));
      return {};
    };
    REQUIRE(run_blocking(*w_.loop, w_.journal->commit(count)));
    REQUIRE(kept.size() == anew.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      INFO(run << ": " << anew[i].scope);
      CHECK(kept[i].scope == anew[i].scope);
      CHECK(kept[i].held == anew[i].held);
      CHECK(kept[i].spent == anew[i].spent);
      REQUIRE(kept[i].reserved == anew[i].reserved);
      others += anew[i].spent > 0;
      if (anew[i].scope == "month") REQUIRE(anew[i].reserved == committed());
    }
  }

  Micros committed() {
    Micros sum = 0;
    const std::vector<Lease> all = w_.manager->all(false).value();
    for (const Lease& l : all) sum += l.committed_micros(w_.clock.us);
    return sum;
  }

  World w_;
  std::unique_ptr<store::Db> other_process_;
  std::mt19937 random_;
  std::vector<std::string> ids_;
  int n_ = 0;
};

}  // namespace

TEST_CASE("sums of budgets that are kept are what a count would find") {
  int rented = 0, rolled_back = 0, others = 0, resized = 0, unsettled = 0;
  for (int seed = 1; seed <= 8; ++seed) {
    INFO("seed " << seed);
    Books books(seed);
    books.play(60);
    rented += books.rented;
    rolled_back += books.rolled_back;
    others += books.others;
    resized += books.resized;
    unsettled += books.unsettled;
  }
  CHECK(rented > 50);
  CHECK(rolled_back > 10);
  CHECK(others > 10);
  CHECK(resized > 5);
  CHECK(unsettled > 2);
}

TEST_CASE("child runs share the number of leases that the host program allows") {
  World w;
  w.run("r");
  w.run("child");
  w.sql("UPDATE runs SET parent='r' WHERE id='child'");
  const auto rent = [&w](const std::string& run, const std::string& name) {
    Acquire a = w.wanted(run, name);
    a.most = LeaseLimit(2, "r");
    return w.rent(std::move(a)).value();
  };
  REQUIRE(rent("r", "one").ok());
  REQUIRE(rent("child", "two").ok());
  for (const auto& [run, holder] :
       {std::pair("r", "the run holds"), std::pair("child", "run r and its child runs hold")}) {
    const Result<Lease> refused = rent(run, "three");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().kind == ErrorKind::quota);
    CHECK(refused.error().message == std::string(holder) + " 2 leases, and the host program allows 2");
  }
  REQUIRE(w.release(Manager::lease_id("child", "main/two#1"))->ok());
  CHECK(rent("child", "four").ok());
}
