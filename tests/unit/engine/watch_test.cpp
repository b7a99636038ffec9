// The watch on a virtual clock: hours pass in microseconds, and processes are what the test says they are.
#include "runtime/workflow/engine/watch.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/time.hpp"

using namespace rille;
using namespace rille::engine;

namespace {

constexpr std::int64_t hour_ms = 3'600'000;

// A home, whose watch can be killed and begun again.
struct Home {
  VirtualTime time{1'795'266'000'000'000};  // 2026-11-21T13:00:00Z
  std::shared_ptr<store::Db> disk = store::Journal::make_disk().value();
  std::set<std::string> alive;
  std::vector<std::string> started, told, interrupted;
  bool interrupts = true;
  std::map<std::string, std::string> scripts{{"/x.lua", "one"}};
  int reaped = 0, reaps_fail = 0;
  std::function<void()> on_reap;
  WatchOptions options;

  struct Process {
    std::unique_ptr<Loop> loop;
    std::unique_ptr<store::Journal> journal;
    std::unique_ptr<Watch> watch;
  };
  Process open() {
    Process p;
    p.loop = Loop::create_virtual(time).value();
    p.journal = store::Journal::in_memory(*p.loop, disk);
    WatchWorld world;
    world.alive = [this](const std::string& run) { return alive.contains(run); };
    world.start = [this](const std::string& run, const std::string&) -> Result<> {
      started.push_back(run);
      REQUIRE(disk->run("UPDATE runs SET state='running', epoch=epoch+1 WHERE id=?", {run}).ok());
      alive.insert(run);
      return {};
    };
    world.interrupt = [this](const std::string& run) -> Result<> {
      if (!interrupts) return make_error(ErrorKind::state, "its process is another program");
      interrupted.push_back(run);
      return {};
    };
    world.reap = [this]() -> Async<> {
      ++reaped;
      if (on_reap) on_reap();
      if (reaps_fail > 0 && reaps_fail--) co_return make_error(ErrorKind::network, "a region does not answer");
      co_return success();
    };
    world.read = [this](const std::string& path) -> Result<std::string> {
      if (auto it = scripts.find(path); it != scripts.end()) return it->second;
      return make_error(ErrorKind::io, path + ": no such file");
    };
    world.tell = [this](const Value& e) {
      told.push_back(e.text("event") + " " + e.text("run", e.text("schedule")) + " " + e.text("why"));
    };
    p.watch = std::make_unique<Watch>(*p.loop, *p.journal, options, std::move(world));
    return p;
  }

  void watch_for(std::int64_t ms) {
    Process p = open();
    CancelSource stop;
    Timer timer(*p.loop, ms, [&stop] { stop.cancel(make_error(ErrorKind::cancelled, "enough")); });
    CHECK(run_blocking(*p.loop, p.watch->run(stop.token())).error().kind == ErrorKind::cancelled);
  }
  Result<> add(const char* name, const char* when, const char* missed = "one", const char* overlap = "skip") {
    Process p = open();
    Schedules schedules(*p.loop, *p.journal);
    Schedule s;
    s.name = name, s.when = when, s.script = "/x.lua", s.missed = missed, s.overlap = overlap;
    return run_blocking(*p.loop, schedules.add(std::move(s)));
  }
  void end(const std::string& run) {
    alive.erase(run);
    REQUIRE(disk->run("UPDATE runs SET state='done' WHERE id=?", {run}).ok());
  }
  void end_all() {
    for (const std::string& run : std::set<std::string>(alive)) end(run);
  }
  void die(const std::string& run) { alive.erase(run); }
  void entry(const std::string& run, int seq) {
    REQUIRE(disk->run("INSERT INTO entries SELECT (number<<32)|?2,'main',?2,'step','s',1,'',1,'',0,0,'1',NULL,NULL "
                      "FROM runs WHERE id=?1",
                      {run, std::int64_t{seq}})
                .ok());
  }
  std::vector<std::string> take_started() { return std::exchange(started, {}); }
  std::vector<std::string> take_told() { return std::exchange(told, {}); }
};

using Runs = std::vector<std::string>;

}  // namespace

TEST_CASE("each due instant starts one run, however many watchers look") {
  Home home;
  REQUIRE(home.add("hourly", "0 * * * *", "one", "allow").ok());
  home.watch_for(hour_ms - 60'000);
  CHECK(home.take_started().empty());
  for (int i = 0; i < 4; ++i) home.watch_for(hour_ms / 2);  // killed and begun again
  CHECK(home.take_started() == Runs{"hourly-20261121T140000Z", "hourly-20261121T150000Z"});
  // The wall clock is set back: what has been is not again.
  home.time.set_wall_back(2 * hour_ms);
  home.watch_for(2 * hour_ms);
  CHECK(home.take_started().empty());
  home.watch_for(hour_ms);
  CHECK(home.take_started() == Runs{"hourly-20261121T160000Z"});
  CHECK(home.reaped > 12 * 5);
}

TEST_CASE("the reaper soon runs again if a provider did not answer") {
  Home home;
  home.watch_for(200'000);
  CHECK(home.reaped == 1);
  home.reaped = 0;
  home.reaps_fail = 2;
  home.watch_for(200'000);
  CHECK(home.reaped == 3);
}

TEST_CASE("two that watch at a time start a run once") {
  Home home;
  REQUIRE(home.add("s", "every 1h", "all", "allow").ok());
  home.time.pass(3 * hour_ms);
  Home::Process a = home.open(), b = home.open();
  // Both decide before either has written.
  Schedules one(*a.loop, *a.journal), two(*b.loop, *b.journal);
  auto first = run_blocking(*a.loop, one.look()), second = run_blocking(*b.loop, two.look());
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->size() == 3);
  CHECK(second->empty());
}

TEST_CASE("instants at which nothing watched: the last, none, or all") {
  Home home;
  REQUIRE(home.add("one", "every 1h", "one", "allow").ok());
  REQUIRE(home.add("none", "every 1h", "skip", "allow").ok());
  REQUIRE(home.add("all", "every 1h", "all", "allow").ok());
  REQUIRE(home.add("queue", "every 1h", "all", "queue").ok());
  home.time.pass(3 * hour_ms + hour_ms / 2);
  home.watch_for(60'000);
  CHECK(home.take_started() == Runs{"all-20261121T140000Z", "all-20261121T150000Z", "all-20261121T160000Z",
                                    "one-20261121T160000Z", "queue-20261121T140000Z"});
  home.end_all();
  home.watch_for(60'000);
  CHECK(home.take_started() == Runs{"queue-20261121T150000Z"});
  home.end_all();
  home.watch_for(hour_ms);
  CHECK(home.take_started().size() == 4);  // at 17 h, and the one of the queue from 16 h
}

TEST_CASE("while the last run goes on, an instant passes, or waits") {
  Home home;
  REQUIRE(home.add("skips", "every 1h").ok());
  REQUIRE(home.add("waits", "every 1h", "one", "queue").ok());
  home.watch_for(hour_ms + 1000);
  CHECK(home.take_started() == Runs{"skips-20261121T140000Z", "waits-20261121T140000Z"});
  home.take_told();
  home.watch_for(2 * hour_ms);
  CHECK(home.take_started().empty());
  CHECK(home.take_told() == Runs{"skipped skips run skips-20261121T140000Z has not ended",
                                 "skipped skips run skips-20261121T140000Z has not ended"});
  home.end_all();
  home.watch_for(60'000);
  CHECK(home.take_started() == Runs{"waits-20261121T160000Z"});  // the last of those that waited
}

TEST_CASE("an instant ends the last run, once, and begins when it has ended") {
  Home home;
  REQUIRE(home.add("s", "every 1h", "one", "cancel").ok());
  home.watch_for(hour_ms + 1000);
  CHECK(home.take_started() == Runs{"s-20261121T140000Z"});
  home.watch_for(2 * hour_ms);
  CHECK(home.interrupted == Runs{"s-20261121T140000Z"});
  CHECK(home.take_started().empty());
  home.end_all();
  home.watch_for(60'000);
  CHECK(home.take_started() == Runs{"s-20261121T160000Z"});
}

TEST_CASE("a run that gets no signal is not said to be cancelled") {
  Home home;
  home.interrupts = false;
  REQUIRE(home.add("s", "every 1h", "one", "cancel").ok());
  home.watch_for(hour_ms + 1000);
  home.take_told();
  home.watch_for(2 * hour_ms);
  const Runs told = home.take_told();
  CHECK(std::count(told.begin(), told.end(), "failed  ") == 1);
  CHECK(std::none_of(told.begin(), told.end(), [](const auto& line) { return line.starts_with("cancelled"); }));
}

TEST_CASE("a run that was given up is no reason not to start the next one") {
  Home home;
  REQUIRE(home.add("s", "every 1h").ok());
  home.watch_for(hour_ms + 1000);
  home.die(home.take_started().at(0));
  home.scripts["/x.lua"] = "one";
  REQUIRE(home.disk->run("INSERT INTO blobs VALUES('0','zero')").ok());
  REQUIRE(home.disk->run("INSERT INTO sources SELECT id,'x.lua','0' FROM runs").ok());
  home.watch_for(hour_ms + 1000);
  CHECK(home.take_started() == Runs{"s-20261121T150000Z"});
}

TEST_CASE("a run whose process died is started again, a few times") {
  Home home;
  REQUIRE(home.add("s", "every 100h").ok());
  home.watch_for(100 * hour_ms + 1000);
  std::string run = home.take_started().at(0);
  home.watch_for(hour_ms);
  CHECK(home.take_started().empty());
  for (int i = 0; i < 3; ++i) {
    home.die(run);
    home.watch_for(hour_ms);
  }
  CHECK(home.take_started().size() == 3);
  home.entry(run, 1);  // it got further: it may die as often again
  for (int i = 0; i < 9; ++i) {
    home.die(run);
    home.watch_for(hour_ms);
  }
  CHECK(home.take_started().size() == 5);
  home.take_told();
  home.watch_for(hour_ms);
  CHECK(home.take_told().empty());  // that it was given up has been said
  home.entry(run, 2);
  home.watch_for(hour_ms);
  CHECK(home.take_started() == Runs{run});  // the user has helped it
}

TEST_CASE("the reaper does not clean up a run that was resumed after a long pause") {
  Home home;
  REQUIRE(home.add("s", "every 100h").ok());
  home.watch_for(100 * hour_ms + 1000);
  const std::string run = home.take_started().at(0);
  home.die(run);
  home.time.pass(13 * hour_ms);
  home.reaped = 0;
  home.on_reap = [&] {
    CHECK(home.started == Runs{run});
    std::int64_t silent_us = -1;  // what the reaper counts hold_ttl from
    REQUIRE(home.disk
                ->query("SELECT updated_us FROM runs WHERE id=?", {run},
                        [&](const store::Row& row) { silent_us = home.time.wall_us() - row.integer(0); })
                .ok());
    CHECK(silent_us < 60'000'000);
  };
  home.watch_for(60'000);
  CHECK(home.reaped == 1);
}

TEST_CASE("a run is left alone when its script has changed, when it is old, or when that is wished") {
  Home home;
  REQUIRE(home.add("s", "every 1h").ok());
  home.watch_for(hour_ms + 1000);
  std::string run = home.take_started().at(0);
  REQUIRE(home.disk->run("INSERT INTO blobs VALUES(?,'one')", {sha256_hex("one")}).ok());
  REQUIRE(home.disk->run("INSERT INTO sources VALUES(?,'x.lua',?)", {run, sha256_hex("one")}).ok());
  REQUIRE(home.disk->run("DELETE FROM schedules").ok());
  home.take_told();
  home.die(run);
  home.scripts["/x.lua"] = "two";
  home.watch_for(60'000);
  CHECK(home.take_told() == Runs{"given_up " + run + " /x.lua has changed since it began"});
  home.scripts.clear();
  home.watch_for(60'000);
  CHECK(home.take_told() == Runs{"given_up " + run + " its script cannot be read: /x.lua: no such file"});
  home.scripts["/x.lua"] = "one";
  home.options.resumes = false;
  home.watch_for(60'000);
  CHECK(home.take_started().empty());
  home.options.resumes = true;
  home.watch_for(60'000);
  CHECK(home.take_started() == Runs{run});
  home.die(run);
  home.time.pass(30 * hour_ms);
  home.watch_for(60'000);
  CHECK(home.take_started().empty());
  // What a person has suspended stays so.
  REQUIRE(home.disk->run("UPDATE runs SET state='suspended', updated_us=?", {home.time.wall_us()}).ok());
  home.watch_for(60'000);
  CHECK(home.take_started().empty());
}

TEST_CASE("a run that is given up with its machines sends one alert") {
  Home home;
  const auto sql = [&home](const std::string& text) { REQUIRE(home.disk->run(text).ok()); };
  const bool holds = GENERATE(true, false);
  home.scripts.clear();
  const std::string now = std::to_string(home.time.wall_us());
  sql("INSERT INTO runs(id,script,mode,state,epoch,args,tag,created_us,updated_us,host,pid) "
      "VALUES('r','/x.lua','durable','running',1,'{}','eval'," +
      now + "," + now + ",'h',1)");
  sql("INSERT INTO budgets(scope,limit_micros,alert_percent,alert_url) VALUES('tag:eval',1,80,'env:TEAM'),"
      "('tag:other',1,80,'mailto:b@example.org'),('month',1,80,'')");
  sql("INSERT INTO alerts(key,run,url,body,created_us,next_us,told_us) VALUES('address:r','r','env:OWN','{}',1,1,1)");
  if (holds)
    sql("INSERT INTO leases(id,run,name,scope,generation,provider,state,token,tag,price_micros_per_hour,created_us,"
        "expires_us,cap_micros_per_hour,disk_micros_per_hour,reserved_micros,open) VALUES('l','r','box','main',1,'aws',"
        "'live','t','g',2500000," +
        now + "," + now + ",1,0,1,1)");
  sql("INSERT INTO requests(lease,request,options) SELECT number,'{\"offer\":{\"provider\":\"aws\",\"id\":\"x\"},"
      "\"tag\":\"g\",\"token\":\"t\"}','{}' FROM leases");
  home.watch_for(hour_ms);
  home.watch_for(hour_ms);
  std::vector<std::string> urls;
  std::string body;
  REQUIRE(home.disk
              ->query("SELECT url,body FROM alerts WHERE told_us IS NULL ORDER BY url", {},
                      [&](const store::Row& row) { urls.push_back(row.text(0)), body = row.text(1); })
              .ok());
  CHECK(urls == (holds ? std::vector<std::string>{"env:OWN", "env:TEAM"} : std::vector<std::string>{}));
  if (holds) CHECK_THAT(body, Catch::Contains("It holds 1 machine at $2.50 per hour"));
  CHECK(home.take_told().size() == 1);
}

TEST_CASE("schedules are refused for what is wrong with them") {
  Home home;
  CHECK(home.add("last", "every 1h").error().kind == ErrorKind::invalid);
  CHECK(home.add("a b", "every 1h").error().kind == ErrorKind::invalid);
  CHECK(home.add("a", "never").error().kind == ErrorKind::invalid);
  CHECK(home.add("a", "every 1h", "some").error().kind == ErrorKind::invalid);
  CHECK(home.add("a", "every 1h", "all").error().kind == ErrorKind::invalid);
  REQUIRE(home.add("a", "every 1h").ok());
  CHECK(home.add("a", "every 2h").error().kind == ErrorKind::state);
}
