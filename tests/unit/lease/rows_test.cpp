// What is written of a lease is what is read of it: nothing is left of the generation before, and nothing is half.
#include "runtime/workflow/lease/rows.hpp"

#include <catch2/catch.hpp>

using namespace rille;
using namespace rille::lease;

namespace {

std::shared_ptr<store::Db> disk() {
  std::shared_ptr<store::Db> db = store::Journal::make_disk().value();
  REQUIRE(
      db->script("INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid) "
                 "VALUES('r','t','durable','running',7,'{}',0,0,'h',1)"));
  return db;
}

// No two fields of any two leases are the same, but for their id and their run.
Lease lease_of(int n) {
  const std::string s = std::to_string(n);
  const std::int64_t us = n * 1'000'000'000LL;
  Lease l;
  l.id = "l-1";
  l.run = "r";
  l.name = "name" + s, l.scope = "scope" + s, l.provider = "provider" + s, l.state = "state" + s;
  l.token = "token" + s, l.tag = "tag" + s, l.machine_id = "machine" + s, l.error = "error" + s;
  l.replacing = "replacing" + s;
  l.generation = n;
  l.price_micros_per_hour = us + 1, l.created_us = us + 2, l.send_by_us = us + 3, l.live_us = us + 4;
  l.expires_us = us + 5, l.released_us = us + 6, l.cap_micros_per_hour = us + 7, l.disk_micros_per_hour = us + 8;
  l.reserved_micros = us + 9;
  l.detached = n % 2 == 1;
  l.options.set("gpu", "option" + s);
  l.request.offer.id = "offer" + s, l.request.offer.provider = l.provider;
  l.request.token = l.token;
  l.request.tag = l.tag;
  l.request.extra.set("extra", s);
  l.machine.emplace();
  l.machine->id = l.machine_id;
  l.machine->details.set("address", s);
  return l;
}

// Every column, as it is in `leases` or `requests`.
std::vector<std::string> columns_of(const Lease& l) {
  const auto n = [](std::int64_t i) { return std::to_string(i); };
  return {l.id,
          l.run,
          l.name,
          l.scope,
          l.provider,
          l.state,
          l.token,
          l.tag,
          l.machine_id,
          l.error,
          l.replacing,
          n(l.generation),
          n(l.price_micros_per_hour),
          n(l.created_us),
          n(l.send_by_us),
          n(l.live_us),
          n(l.expires_us),
          n(l.released_us),
          n(l.cap_micros_per_hour),
          n(l.disk_micros_per_hour),
          n(l.reserved_micros),
          n(l.detached),
          l.options.to_json(),
          l.request.to_value().to_json(),
          l.machine ? l.machine->to_value().to_json() : "",
          l.change ? l.change->to_value().to_json() : ""};
}

Lease only_row(store::Db& db) {
  const Result<std::vector<Lease>> rows = read_leases(db, "", {});
  REQUIRE(rows);
  REQUIRE(rows->size() == 1);
  return rows->front();
}

void write_and_compare(store::Db& db, const Lease& l) {
  REQUIRE(write_lease(db, l));
  CHECK(columns_of(only_row(db)) == columns_of(l));
}

}  // namespace

TEST_CASE("a new lease's row is all of it, and so is that of a new generation or of a change of type", "[unit]") {
  const std::shared_ptr<store::Db> db = disk();
  write_and_compare(*db, lease_of(1));
  Lease next = lease_of(2);
  next.seen = only_row(*db).seen;
  write_and_compare(*db, next);
  Lease changing = lease_of(3);
  changing.generation = 2;
  changing.state = "resizing";
  changing.change.emplace();
  changing.change->offer.id = "larger", changing.change->offer.provider = changing.provider;
  changing.seen = only_row(*db).seen;
  write_and_compare(*db, changing);
  Lease changed = lease_of(4);
  changed.generation = 2;
  changed.seen = only_row(*db).seen;
  write_and_compare(*db, changed);
  int requests = 0;
  REQUIRE(db->query("SELECT 1 FROM requests", {}, [&](const store::Row&) { ++requests; }));
  CHECK(requests == 1);
}

TEST_CASE("a lease that moves keeps what it asked for", "[unit]") {
  const std::shared_ptr<store::Db> db = disk();
  REQUIRE(write_lease(*db, lease_of(1)));
  const Lease before = only_row(*db);
  for (const bool fenced : {false, true}) {
    Lease moved = lease_of(fenced ? 3 : 2), expected = before;
    moved.generation = 1;
    moved.state = "live";
    moved.seen = only_row(*db).seen;
    moved.seen.state = fenced ? "live" : "state1";
    REQUIRE(write_lease(*db, moved, fenced));
    expected.state = "live";
    if (!fenced) expected.machine = moved.machine;  // the answer to the create call
    else expected.machine = lease_of(2).machine;
    expected.machine_id = moved.machine_id;
    expected.send_by_us = moved.send_by_us, expected.live_us = moved.live_us, expected.expires_us = moved.expires_us;
    expected.released_us = moved.released_us, expected.detached = moved.detached, expected.error = moved.error;
    expected.replacing = moved.replacing;
    CHECK(columns_of(only_row(*db)) == columns_of(expected));
  }
  Lease ending = only_row(*db), expected = ending, brief;
  expected.state = "releasing";
  expected.replacing.clear();
  REQUIRE(read_brief(*db, ending.id, brief).value());
  CHECK(brief.number == ending.number);
  REQUIRE(write_ending(*db, ending));
  CHECK(columns_of(only_row(*db)) == columns_of(expected));
  CHECK_FALSE(write_ending(*db, ending));  // it was live
  Lease none;
  CHECK_FALSE(read_brief(*db, "another", none).value());
}

TEST_CASE("a write over a row that has moved leaves nothing of itself", "[unit]") {
  const std::shared_ptr<store::Db> db = disk();
  REQUIRE(write_lease(*db, lease_of(1)));
  const Lease before = only_row(*db);
  const auto refused = [&](Lease::Seen seen, std::int64_t generation, bool fenced) {
    Lease l = lease_of(2);
    l.seen = std::move(seen);
    l.generation = generation;
    const Result<> written = write_lease(*db, l, fenced);
    REQUIRE_FALSE(written);
    CHECK(is_moved(written.error()));
    CHECK(columns_of(only_row(*db)) == columns_of(before));
  };
  for (const bool fenced : {false, true}) {
    refused({"another", 1, 7}, 1, fenced);
    refused({"state1", 5, 7}, 5, fenced);
    refused({"another", 1, 7}, 2, fenced);
    refused({"state1", 1, 6}, 2, fenced);
    refused({}, 1, fenced);  // there was no row
  }
  refused({"state1", 1, 6}, 1, false);  // of another runner: with a fence the journal says so
  const auto covered = [&](const char* run, std::int64_t epoch) { return covers(store::Fence(run, epoch), before); };
  CHECK(covered("r", 7));
  CHECK_FALSE(covered("r", 8));
  CHECK_FALSE(covered("other", 7));
  CHECK_FALSE(covers(store::Fence(), before));
}

TEST_CASE("a lease without its request is damage, which is said", "[unit]") {
  const std::shared_ptr<store::Db> db = disk();
  REQUIRE(write_lease(*db, lease_of(1)));
  REQUIRE(db->run("DELETE FROM requests"));
  const auto read = read_leases(*db, "", {});
  REQUIRE_FALSE(read);
  CHECK(read.error().kind == ErrorKind::integrity);
  CHECK(read.error().message.find("l-1") != std::string::npos);
  Lease next = lease_of(2);
  next.seen.state = "state1", next.seen.generation = 1, next.seen.epoch = 7;
  CHECK_FALSE(write_lease(*db, next));  // nor is it written by halves
}

TEST_CASE("a lease is in the index of those that are open until it is released, whichever way it moves", "[unit]") {
  const std::shared_ptr<store::Db> db = disk();
  const auto open = [&db] {
    int rows = 0;
    REQUIRE(db->query("SELECT 1 FROM leases WHERE open IS NOT NULL AND state<>'released'", {},
                      [&](const store::Row&) { ++rows; }));
    return rows == 1;
  };
  const auto move = [&db](const char* state, std::int64_t generation) {
    Lease l = only_row(*db);
    l.state = state;
    l.generation = generation;
    REQUIRE(write_lease(*db, l));
  };
  Lease l = lease_of(1);
  l.state = "creating";
  REQUIRE(write_lease(*db, l));
  CHECK(open());
  for (const char* const state : {"live", "releasing"}) {
    move(state, 1);
    CHECK(open());
  }
  move("released", 1);
  CHECK_FALSE(open());
  move("live", 1);  // it was settled too early
  CHECK(open());
  move("released", 1);
  move("creating", 2);
  CHECK(open());
  move("released", 3);
  CHECK_FALSE(open());
  CHECK_FALSE(db->run("UPDATE leases SET state='live'"));  // neither without the other
  CHECK_FALSE(db->run("UPDATE leases SET open=1"));
}

TEST_CASE("a lease that is over ends its own machine as it was found, and any other when its row does", "[unit]") {
  const std::shared_ptr<store::Db> db = disk();
  Lease l = lease_of(1);
  l.state = "live";
  REQUIRE(write_lease(*db, l));
  REQUIRE(
      db->run("INSERT INTO machines(lease,generation,machine_id,provider,region,billing,from_us,busy_since_us) "
              "SELECT lease,9,'other',provider,region,billing,from_us,from_us FROM machines"));
  REQUIRE(
      db->run("INSERT INTO segments(lease,generation,machine_id,part,from_us,micros_per_hour,source) "
              "SELECT lease,9,'other',part,from_us,micros_per_hour,source FROM segments"));
  Lease over = only_row(*db);
  const std::int64_t from_us = over.tenures.front().from_us;
  over.state = "released";
  over.released_us = from_us + 1'000;
  Ending ending;
  ending.machine_us = from_us + 600, ending.all_us = from_us + 900;
  REQUIRE(write_lease(*db, over, texts_of(over), false, ending));
  const std::vector<Tenure> tenures = read_tenures(*db, over.number).value();
  REQUIRE(tenures.size() == 2);
  const Tenure &own = tenures[0], &other = tenures[1];
  CHECK(own.machine_id == l.machine_id);
  CHECK(own.to_us == ending.all_us);
  REQUIRE(own.segments.size() == 2);
  for (const Segment& s : own.segments) CHECK(s.to_us == (s.part == "machine" ? ending.machine_us : ending.all_us));
  CHECK(other.to_us == over.released_us);
  CHECK(other.busy_us == 1'000);
  CHECK(other.busy_since_us == 0);
  REQUIRE(other.segments.size() == 2);
  for (const Segment& s : other.segments) CHECK(s.to_us == over.released_us);
}
