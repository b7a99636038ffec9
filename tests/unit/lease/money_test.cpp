// The faults that cost money, one by one.
#include "runtime/workflow/lease/terms.hpp"
#include "runtime/workflow/provider/local/local.hpp"
#include "tests/unit/lease/cloud.hpp"

using namespace rille;
using namespace rille::lease;
using namespace rille::lease::test;

namespace {

Lease rented(World& w, const std::string& name = "box", Value options = Value(Value::Object{})) {
  auto r = w.rent(w.wanted("r", name, std::move(options)));
  REQUIRE(r);
  if (!*r) FAIL((*r).error().summary());
  return **r;
}
}  // namespace

TEST_CASE("a machine that lives although its row says released is ended at once and reported") {
  World w;
  w.run("r");
  Lease l = rented(w);
  REQUIRE(w.release(l.id)->ok());
  REQUIRE(w.billable() == 0);
  w.cloud.put(l.tag, "late", w.clock.us, w.clock.us);
  w.sql("UPDATE runs SET state='done'");

  auto report = w.reap();
  REQUIRE(report->ok());
  CHECK((*report)->revived.size() == 1);
  CHECK((*report)->released.size() == 1);
  CHECK((*report)->unknown.empty());
  CHECK(w.billable() == 0);
  CHECK(w.row(l.id).state == "released");

  SECTION("and is shown as long as it cannot be ended") {
    w.cloud.put(l.tag, "later", w.clock.us, w.clock.us);
    w.cloud.fail_terminates = 1000;
    auto second = w.reap();
    REQUIRE(second->ok());
    CHECK((*second)->failed.size() == 1);
    CHECK(w.row(l.id).state == "releasing");
    CHECK(w.row(l.id).billable());
    w.cloud.fail_terminates = 0;
    REQUIRE(w.reap()->ok());
    CHECK(w.billable() == 0);
  }
}

TEST_CASE("a second machine of a live lease, and one of an older generation, are ended") {
  World w;
  w.run("r");
  Lease l = rented(w);
  w.cloud.put(l.tag, "twin", w.clock.us, w.clock.us);
  std::string older = l.tag;
  w.sql("UPDATE leases SET generation=2, tag=replace(tag,'-g1-','-g2-')");
  w.cloud.boxes[l.machine_id].tag = w.row(l.id).tag;
  w.cloud.put(w.row(l.id).tag, "twin", w.clock.us, w.clock.us);
  auto report = w.reap();
  REQUIRE(report->ok());
  CHECK((*report)->revived.size() == 2);
  CHECK(w.billable() == 1);
  CHECK(w.cloud.alive(l.machine_id, w.clock.us));
}

TEST_CASE("a journal that cannot be written does not keep a machine alive") {
  World w;
  w.run("r");
  Lease l = rented(w);
  w.sql("CREATE TRIGGER full BEFORE UPDATE ON leases BEGIN SELECT RAISE(ABORT,'database or disk is full'); END");
  auto r = w.release(l.id);
  REQUIRE_FALSE(r->ok());
  CHECK(w.billable() == 0);
  CHECK((*r).error().message.find("has ended, but that could not be recorded") != std::string::npos);
  CHECK((*r).error().message.find("disk is full") != std::string::npos);
  CHECK(w.row(l.id).state == "live");

  w.sql("DROP TRIGGER full; UPDATE runs SET state='failed'");
  auto report = w.reap();
  REQUIRE(report->ok());
  CHECK((*report)->released.size() == 1);
  CHECK(w.row(l.id).state == "released");
}

TEST_CASE("a create whose answer could not be recorded is found by its tag when released") {
  World w;
  w.cloud.traits.visibility_lag_ms = 20'000;
  w.run("r");
  w.sql(
      "CREATE TRIGGER full BEFORE UPDATE ON leases WHEN NEW.state='live' "
      "BEGIN SELECT RAISE(ABORT,'database or disk is full'); END;");
  REQUIRE_FALSE(w.rent(w.wanted("r", "box"))->ok());
  REQUIRE(w.billable() == 1);
  std::string id = Manager::lease_id("r", "main/box#1");
  CHECK(w.row(id).state == "creating");
  REQUIRE(w.release(id)->ok());
  CHECK(w.billable() == 0);
}

TEST_CASE("parallel rents reserve their money and their number in the transaction that records them") {
  TempDir dir;
  auto loop = Loop::create().value();
  auto journal = store::Journal::open(*loop, dir.path + "/journal.db").value();
  provider::Registry registry;
  provider::LocalOptions local;
  local.root = dir.path;
  local.price_micros_per_hour = 1'000'000;
  REQUIRE(registry.add(provider::make_local_provider(*loop, local)));
  Manager manager(*loop, *journal, registry, "0123456789ab");
  bool by_money = GENERATE(true, false);
  store::Journal::Write insert = [by_money](store::Db& db) {
    return db.run(
        "INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid,budget_micros) "
        "VALUES('r','t','durable','running',1,'{}',0,0,'h',1,?)",
        {by_money ? std::int64_t{3'000'000} : std::int64_t{3'000'000'000}});
  };
  REQUIRE(run_blocking(*loop, journal->commit(insert)));

  std::vector<Result<Lease>> results;
  for (int i = 0; i < 8; ++i) {
    Acquire a;
    a.key = a.name = "box" + std::to_string(i);
    a.options = Value().set("gpu", "cpu").set("ttl", "1h").set("min_ttl", "1h");
    a.fence = store::Fence("r", 1);
    if (!by_money) a.most.leases = 3;
    Manager::Event quiet = [](const std::string&, Value) {};
    loop->spawn([](Manager& m, Acquire want, Manager::Event e, std::vector<Result<Lease>>& out) -> Task<void> {
      auto r = co_await m.acquire(std::move(want), std::move(e), {});
      out.push_back(std::move(r));
    }(manager, a, quiet, results));
  }
  loop->run_until([&] { return results.size() == 8; });
  int made = 0;
  for (const auto& r : results) {
    if (r) ++made;
    else if (by_money) {
      CHECK(r.error().kind == ErrorKind::budget);
      std::string m = r.error().message;
      for (const char* part : {"budget of $3.00", "$3.00 reserved by 3 leases", "it needs $1.00", "$0.00 are left"})
        CHECK_THAT(m, Catch::Contains(part));
    } else {
      CHECK(r.error().kind == ErrorKind::quota);
      CHECK(r.error().message == "the run holds 3 leases, and the host program allows 3");
    }
  }
  CHECK(made == 3);
  CHECK(manager.of_run("r")->size() == 3);
}

TEST_CASE("without tokens an answer that was lost is never sent again: it is found, or proven absent") {
  World w;
  w.cloud.traits.visibility_lag_ms = 120'000;
  w.run("r");
  SECTION("the machine shows late: it is adopted") {
    w.cloud.lose_replies = 1;
    w.cloud.land_late_us = 20'000'000;
    Lease l = rented(w);
    CHECK(l.generation == 1);
    CHECK(w.cloud.creates == 1);
  }
  SECTION("nothing was made: a new generation with a token and a tag of its own") {
    w.cloud.fail_creates = 1;
    std::int64_t before = w.clock.us;
    std::string first;
    w.cloud.before_create = [&] {
      if (first.empty()) first = w.row(Manager::lease_id("r", "main/box#1")).token;
    };
    Lease l = rented(w);
    CHECK(l.generation == 2);
    CHECK(l.token != first);
    CHECK(l.tag.find("-g2-") != std::string::npos);
    CHECK(w.cloud.boxes.at(l.machine_id).tag == l.tag);
    CHECK(l.request.token == l.token);
    CHECK(w.clock.us - before >= (30'000 + 60'000 + 120'000) * 1000LL);  // send_by, time of a create, lag
  }
  for (const auto& [tag, n] : w.cloud.made) CHECK(n == 1);
  CHECK(w.billable() == 1);
}

TEST_CASE("an offer that refuses is not asked again") {
  World w;
  w.run("r");
  w.cloud.refuse = 1;
  Lease l = rented(w);
  CHECK(l.generation == 2);
  CHECK(l.request.offer.id == "large");
}

TEST_CASE("with tokens a lost answer is asked for by tag, then sent again with the same token") {
  World w;
  w.cloud.traits.token_lifetime_ms = 24 * 3'600'000;
  w.run("r");
  w.cloud.lose_replies = 2;
  Lease l = rented(w);
  CHECK(l.generation == 1);
  CHECK(w.billable() == 1);
  CHECK(w.cloud.creates == 1);  // it shows at once in the list

  SECTION("but not when half the token's life is over") {
    w.cloud.traits.visibility_lag_ms = 30'000;
    w.cloud.fail_creates = 1;
    w.die_at = w.places + 2;  // announced, about to be sent
    REQUIRE_FALSE(w.rent(w.wanted("r", "late")));
    w.restart();
    w.die_at = -1;
    w.clock.us += 13 * hour_us;
    w.cloud.fail_creates = 0;
    Lease late = rented(w, "late");
    CHECK(late.generation == 2);
    CHECK(w.cloud.made.at(late.tag) == 1);
  }
}

TEST_CASE("what is sent later than its row allows is announced anew") {
  World w;
  w.run("r");
  // The machine sleeps for an hour between the row and the call.
  int written = 0;
  std::int64_t sent_us = 0;
  Hooks hooks;
  hooks.pause = [&](std::int64_t ms, CancelToken token) { return w.pause(ms, token); };
  hooks.written = [&]() -> Async<> {
    if (++written == 1) w.clock.us += hour_us;
    co_return success();
  };
  w.manager = std::make_unique<Manager>(*w.loop, *w.journal, w.registry, "0123456789ab", hooks);
  w.cloud.before_create = [&] { sent_us = w.clock.us; };
  Lease l = rented(w);
  CHECK(w.cloud.creates == 1);
  CHECK(sent_us < l.send_by_us);
}

TEST_CASE("a create call that is held up until its time is over is not sent") {
  World w;
  w.run("r");
  w.cloud.pass = [&](std::int64_t us) { w.clock.us += us; };
  w.cloud.hold_up_us = 31'000'000;
  SECTION("its row is written anew, and the next is in time") {
    w.cloud.hold_ups = 2;
    Lease l = rented(w);
    CHECK(l.generation == 1);
    CHECK(l.send_by_us > w.clock.us);
    CHECK(w.cloud.creates == 1);
    CHECK(w.cloud.made.at(l.tag) == 1);
    CHECK(w.billable() == 1);
  }
  SECTION("each time: it is refused, and its lease is closed") {
    w.cloud.hold_ups = 100;
    auto r = w.rent(w.wanted("r", "box"));
    REQUIRE(r);
    REQUIRE_FALSE(*r);
    CHECK(to_string((*r).error().kind) == to_string(ErrorKind::timeout));
    CHECK(is_late((*r).error()));
    CHECK((*r).error().message.find("'box' is not rented: 5 times this machine was too slow to send") == 0);
    CHECK_FALSE((*r).error().hint.empty());
    const std::string id = Manager::lease_id("r", "main/box#1");
    REQUIRE(w.release(id)->ok());
    CHECK(w.row(id).state == "released");
    CHECK(w.cloud.creates == 0);
    CHECK(w.cloud.boxes.empty());
  }
  SECTION("after one whose answer was lost: that one is found") {
    w.cloud.traits.token_lifetime_ms = 24 * 3'600'000;
    w.cloud.traits.visibility_lag_ms = 10'000;
    w.cloud.lose_replies = 1;
    w.cloud.before_create = [&] { w.cloud.hold_ups = 1; };  // the next one
    Lease l = rented(w);
    CHECK(l.generation == 1);
    CHECK(w.cloud.creates == 1);
    CHECK(w.billable() == 1);
  }
}

TEST_CASE("a process that wakes up behind the proof that it made nothing makes nothing") {
  World w;
  w.run("r");
  std::optional<Result<Lease>> other;
  w.cloud.hold_ups = 1;
  w.cloud.pass = [&](std::int64_t) {  // its machine sleeps on the way to the call, and another takes the run over
    w.sql("UPDATE runs SET epoch=2");
    Hooks hooks;
    hooks.pause = [&w](std::int64_t ms, CancelToken token) { return w.pause(ms, token); };
    Manager second(*w.loop, *w.journal, w.registry, "0123456789ab", hooks);
    Manager::Event quiet = [](const std::string&, Value) {};
    other = run_blocking(*w.loop, second.acquire(w.wanted("r", "box", Value(Value::Object{}), 2), quiet, {}));
  };
  const auto first = w.rent(w.wanted("r", "box"));
  REQUIRE(first);
  CHECK_FALSE(*first);
  REQUIRE(other);
  REQUIRE(*other);
  CHECK(w.cloud.creates == 1);
  CHECK(w.cloud.boxes.size() == 1);
  CHECK((*other)->generation == 2);
}

TEST_CASE("a runner that has lost its run writes nothing and ends nothing") {
  World w;
  w.run("r");
  Lease l = rented(w);
  w.sql("UPDATE runs SET epoch=2");
  auto r = w.release(l.id, store::Fence("r", 1));
  REQUIRE_FALSE(r->ok());
  CHECK((*r).error().kind == ErrorKind::state);
  CHECK(w.row(l.id).state == "live");
  CHECK(w.billable() == 1);

  auto late = w.rent(w.wanted("r", "other"));
  REQUIRE_FALSE(late->ok());
  CHECK(w.cloud.creates == 1);

  // Taken over while the create call is on its way: the machine is the new runner's.
  w.cloud.before_create = [&] { w.sql("UPDATE runs SET epoch=3"); };
  auto lost = w.rent(w.wanted("r", "third", Value(Value::Object{}), 2));
  REQUIRE_FALSE(lost->ok());
  CHECK(w.billable() == 2);
  w.cloud.before_create = nullptr;
  auto found = w.rent(w.wanted("r", "third", Value(Value::Object{}), 3));
  REQUIRE(found->ok());
  CHECK(w.billable() == 2);
}

TEST_CASE("a lease that is released while it is being rented leaves no machine") {
  World w;
  w.cloud.traits.visibility_lag_ms = 5'000;
  w.run("r");
  std::string id = Manager::lease_id("r", "main/box#1");
  w.cloud.before_create = [&] {
    w.cloud.before_create = nullptr;
    // As another process would, at the worst moment: it has looked, and found nothing.
    w.sql("UPDATE leases SET state='released',open=NULL");
  };
  auto r = w.rent(w.wanted("r", "box"));
  REQUIRE_FALSE(r->ok());
  CHECK((*r).error().code == "lease_moved");
  CHECK_THAT((*r).error().message, Catch::Contains("it is released"));
  CHECK(w.billable() == 0);
}

TEST_CASE("the reaper leaves a lease whose run was resumed in the meantime") {
  World w;
  w.run("r", "done");
  w.sql("UPDATE runs SET state='running'");
  Lease l = rented(w);
  w.sql("UPDATE runs SET state='failed'");
  bool taken = false;
  // Another process takes the run between the decision and the write.
  Hooks hooks;
  hooks.pause = [&](std::int64_t ms, CancelToken token) { return w.pause(ms, token); };
  w.manager = std::make_unique<Manager>(*w.loop, *w.journal, w.registry, "0123456789ab", hooks);
  w.alive = [&](const std::string&) {
    store::Journal::Write take = [](store::Db& db) { return db.run("UPDATE runs SET epoch=9"); };
    if (!std::exchange(taken, true)) w.journal->enqueue(take);
    return false;
  };
  auto report = w.reap();
  REQUIRE(report->ok());
  CHECK((*report)->released.empty());
  CHECK((*report)->failed.empty());
  CHECK(w.row(l.id).state == "live");
  CHECK(w.billable() == 1);
}

TEST_CASE("what a suspended or diverged run holds ends with its hold, and is shown until then") {
  World w;
  std::string state = GENERATE(std::string("suspended"), std::string("diverged"));
  w.run("r");
  Lease l = rented(w, "box", Value().set("hold_ttl", "2h"));
  w.sql("UPDATE runs SET state='" + state + "', updated_us=" + std::to_string(w.clock.us));
  std::int64_t since = w.clock.us;
  w.clock.us += hour_us;
  auto early = w.reap();
  REQUIRE(early->ok());
  REQUIRE((*early)->held.size() == 1);
  CHECK((*early)->held[0].why == "its run is " + state);
  CHECK((*early)->held[0].until_us == since + 2 * hour_us);
  CHECK(w.billable() == 1);
  SECTION("after it") {
    w.clock.us += hour_us;
    auto late = w.reap();
    REQUIRE(late->ok());
    CHECK((*late)->released.size() == 1);
  }
  SECTION("or at once, when asked") {
    auto now = w.reap(false, "r");
    REQUIRE(now->ok());
    CHECK((*now)->released.size() == 1);
  }
  CHECK(w.billable() == 0);
}

TEST_CASE("what a killed run holds ends with its hold, counted from its last sign of life") {
  World w;
  w.run("r");
  Lease l = rented(w, "box", Value().set("hold_ttl", "2h").set("ttl", "24h"));
  const std::int64_t rented_us = w.row(l.id).live_us;
  std::string why = "its run was interrupted and can be resumed";
  std::int64_t since_us = rented_us;
  SECTION("it was rented") {}
  SECTION("its runner has said that it lives") {
    since_us = rented_us + 5 * hour_us;
    w.sql("UPDATE runs SET updated_us=" + std::to_string(since_us));
  }
  SECTION("the watch has given it up") {
    w.sql("INSERT INTO watched(run,tries,next_us,seen,why) VALUES('r',5,0,0,'its script is gone')");
    why = "its run was interrupted, and its script is gone";
  }
  w.clock.us = since_us + hour_us;
  auto early = w.reap();
  REQUIRE(early->ok());
  REQUIRE((*early)->held.size() == 1);
  CHECK((*early)->held[0].why == why);
  CHECK((*early)->held[0].until_us == since_us + 2 * hour_us);
  w.clock.us = since_us + 2 * hour_us;
  auto late = w.reap();
  REQUIRE(late->ok());
  CHECK((*late)->released.size() == 1);
  CHECK(w.billable() == 0);
}

TEST_CASE("in the background the reaper touches nothing of a run that is alive") {
  World w;
  w.run("r");
  Lease l = rented(w, "box", Value().set("ttl", "1h"));
  w.alive = [](const std::string&) { return true; };
  w.clock.us += 2 * hour_us;
  REQUIRE(w.reap(true)->ok());
  CHECK(w.row(l.id).state == "live");
  REQUIRE(w.reap(false)->ok());
  CHECK(w.row(l.id).state == "released");
}

TEST_CASE("not found is no proof while a machine may not show yet") {
  World w;
  w.cloud.traits.visibility_lag_ms = 60'000;
  w.run("r");
  Lease l = rented(w);
  REQUIRE(w.release(l.id)->ok());  // at once: the cloud knows nothing of it yet, and "succeeds"
  CHECK(w.billable() == 0);
  CHECK(w.row(l.id).state == "released");
}

TEST_CASE("released waits for the provider's last word") {
  World w;
  w.run("r");
  Lease l = rented(w);
  SECTION("a machine that takes its time to end") {
    w.cloud.shutdown_us = 90'000'000;
    w.cloud.forgets = false;
    std::int64_t before = w.clock.us;
    REQUIRE(w.release(l.id)->ok());
    CHECK(w.row(l.id).released_us >= before + 90'000'000);
  }
  SECTION("a machine that does not end") {
    w.cloud.fail_terminates = 1000;
    auto r = w.release(l.id);
    REQUIRE_FALSE(r->ok());
    CHECK(w.row(l.id).state == "releasing");
    CHECK_THAT(w.row(l.id).error, Catch::Contains("connection reset"));
    w.cloud.fail_terminates = 0;
    REQUIRE(w.release(l.id)->ok());
  }
  CHECK(w.billable() == 0);
}

TEST_CASE("the end of an idle machine can be tried again") {
  World w;
  w.run("r");
  const bool replace = GENERATE(false, true);
  Value options{Value::Object{}};
  if (replace) options.set("on_loss", "replace");
  const Lease l = rented(w, "box", options);
  const auto end = [&] {
    Manager::Event quiet = [](const std::string&, Value) {};
    return w.drive(w.manager->end_idle(l.id, l.generation, quiet, {}));
  };
  w.cloud.fail_terminates = 1000;
  CHECK_FALSE(end()->ok());
  CHECK(w.row(l.id).state == "releasing");
  CHECK_FALSE(end()->ok());  // not taken for done
  w.cloud.fail_terminates = 0;
  CHECK(end()->ok());
  CHECK(w.row(l.id).state == "released");
  CHECK(w.row(l.id).replacing.empty() == !replace);
  CHECK(w.billable() == 0);
}

TEST_CASE("a provider that cannot be reached is reported") {
  World w;
  w.cloud.fail_lists = 1;
  auto report = w.reap();
  REQUIRE(report->ok());
  REQUIRE((*report)->errors.size() == 1);
  CHECK((*report)->errors[0].provider == "cloud");
}

TEST_CASE("options of rent that are unknown or not there yet are refused by name") {
  auto refused = [](const char* key, Value value) {
    auto r = read_terms(Value().set(key, std::move(value)));
    REQUIRE_FALSE(r.ok());
    CHECK(r.error().kind == ErrorKind::invalid);
    CHECK_THAT(r.error().message, Catch::Contains(std::string("'") + key + "'"));
    return r.error().hint;
  };
  CHECK(refused("gup", "A100") == "did you mean gpu?");
  CHECK(refused("hold_tll", "1h") == "did you mean hold_ttl?");
  for (const char* key : {"detach", "container", "ports", "budget", "setup"}) CHECK_FALSE(refused(key, true).empty());
}

TEST_CASE("a machine that may not show yet is pending, not gone") {
  World w;
  w.cloud.traits.visibility_lag_ms = 60'000;
  w.run("r");
  Lease l = rented(w);
  CHECK((*w.drive(w.manager->describe(l, {})))->state == provider::MachineState::pending);
  REQUIRE((*w.reap()).ok());
  CHECK(w.row(l.id).state == "live");  // nor does the reaper take it for gone
  w.clock.us += 61'000'000;
  CHECK((*w.drive(w.manager->describe(l, {})))->state == provider::MachineState::live);
  w.cloud.boxes[l.machine_id].gone_us = w.clock.us;
  CHECK((*w.drive(w.manager->describe(l, {})))->state == provider::MachineState::gone);
}

TEST_CASE("a machine whose create was never answered is counted, and its end is in the audit trail") {
  World w;
  w.run("r");
  w.die_at = w.places + 3;  // announced, about to be sent, made; dead before the answer
  REQUIRE_FALSE(w.rent(w.wanted("r", "box")));
  REQUIRE(w.billable() == 1);
  w.restart();
  w.sql("UPDATE runs SET state='failed'");
  w.clock.us += 10 * hour_us;
  REQUIRE(w.reap()->ok());
  CHECK(w.billable() == 0);
  Lease l = w.row(Manager::lease_id("r", "main/box#1"));
  CHECK(l.spent_micros(w.clock.us) >= 10'000'000);
  REQUIRE(w.journal->flush());
  int told = 0;
  (void)w.journal->reader().query("SELECT 1 FROM events WHERE run='r' AND event='released'", {},
                                  [&](const store::Row&) { ++told; });
  CHECK(told == 1);
}

TEST_CASE("a token whose machine was ended elsewhere gives the next generation") {
  World w;
  w.cloud.traits.token_lifetime_ms = 24 * 3'600'000;
  w.run("r");
  w.die_at = w.places + 3;
  REQUIRE_FALSE(w.rent(w.wanted("r", "box")));
  w.restart();
  w.cloud.boxes.begin()->second.gone_us = w.clock.us;
  Lease l = rented(w);
  CHECK(l.generation == 2);
  CHECK(w.billable() == 1);
}

TEST_CASE("what was announced and never sent is planned anew, with its expiry and its money") {
  World w;
  w.cloud.traits.token_lifetime_ms = 240 * 3'600'000;
  w.run("r");
  w.die_at = w.places + (GENERATE(1, 2));  // after it was announced; when it is about to be sent
  REQUIRE_FALSE(w.rent(w.wanted("r", "box", Value().set("ttl", "1h"))));
  w.restart();
  w.clock.us += 2 * hour_us;
  Lease l = rented(w, "box", Value().set("ttl", "1h"));
  CHECK(l.generation == 2);
  CHECK(l.expires_us > w.clock.us);
  CHECK(l.request.expires_wall_us == l.expires_us);
  CHECK(w.cloud.creates == 1);
}

TEST_CASE("a rent that is cancelled before it is sent is settled without the provider") {
  World w;
  w.cloud.traits.visibility_lag_ms = 120'000;
  w.run("r");
  CancelSource source;
  Hooks hooks;
  hooks.pause = [&](std::int64_t ms, CancelToken token) { return w.pause(ms, token); };
  hooks.written = [&]() -> Async<> {
    source.cancel(make_error(ErrorKind::cancelled, "enough"));
    co_return success();
  };
  w.manager = std::make_unique<Manager>(*w.loop, *w.journal, w.registry, "0123456789ab", hooks);
  Manager::Event quiet = [](const std::string&, Value) {};
  auto rent = w.drive(w.manager->acquire(w.wanted("r", "box"), quiet, source.token()));
  REQUIRE(rent);
  REQUIRE_FALSE(rent->ok());
  CHECK(rent->error().kind == ErrorKind::cancelled);
  const std::string id = Manager::lease_id("r", "main/box#1");
  CHECK(w.row(id).state == "intent");
  w.cloud.fail_lists = 1000;
  const std::int64_t before = w.clock.us;
  REQUIRE(w.release(id)->ok());
  CHECK(w.row(id).state == "released");
  CHECK(w.clock.us == before);
  CHECK(w.cloud.creates + w.cloud.terminates == 0);
}
