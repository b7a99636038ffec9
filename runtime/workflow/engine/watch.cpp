#include "runtime/workflow/engine/watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/engine/alert_address.hpp"
#include "runtime/workflow/engine/alerts.hpp"
#include "runtime/workflow/lease/rows.hpp"

namespace rille::engine {

namespace {

constexpr std::int64_t look_again_ns = 60'000'000'000;  // when a run that was not resumed is considered again
constexpr std::int64_t watch_again_ms = 60'000;         // pause before the next reap if one could not ask all providers
constexpr std::int64_t schedule_first_pause_us = 10'000'000, schedule_longest_pause_us = 3'600'000'000;

std::int64_t pause_us(std::int64_t tries) {
  return std::min(schedule_longest_pause_us, schedule_first_pause_us << std::min<std::int64_t>(tries, 20));
}

// Sends an alert to the addresses of the run's budgets, because a run that is given up still pays for machines.
Result<> alert_given_up(store::Db& db, const std::string& run, const std::string& why, std::int64_t now_us) {
  RILLE_TRY(const std::vector<lease::Lease> held,
            lease::read_leases(db, "WHERE run=? AND state<>'released' AND detached=0", {run}));
  if (held.empty()) return {};
  lease::Amounts per_hour;
  bool unknown = false;
  for (const lease::Lease& l : held) {
    const lease::Price price = l.price();
    if (price.micros < 0) unknown = true;
    else if (price.micros > 0) per_hour[price.currency] += price.micros;
  }
  Alert alert;
  alert.run = run;
  alert.body.set("event", "given_up").set("run", run).set("why", why).set("micros_per_hour", per_hour["USD"]);
  if (!lease::only_dollars(per_hour)) alert.body.set("per_hour", lease::to_value(per_hour));
  const std::string rate = lease::to_string(per_hour) + (unknown ? " + ?" : "");
  alert.body.set(
      "message",
      fmt::format("run {} is left alone: {}. It holds {} at {} per hour, for hold_ttl at most; "
                  "`rille resume {}` goes on with it, `rille gc --now {}` ends them",
                  run, why, held.size() == 1 ? "1 machine" : fmt::format("{} machines", held.size()), rate, run, run));
  std::vector<std::string> urls;
  RILLE_CHECK(
      db.query("SELECT url FROM alerts WHERE key=?1 UNION SELECT alert_url FROM budgets "
               "WHERE alert_url<>'' AND (scope='month' OR scope=(SELECT 'tag:'||tag FROM runs WHERE id=?2))",
               {alert_address_key(run), run}, [&](const store::Row& row) { urls.push_back(row.text(0)); }));
  for (const std::string& url : urls) {
    alert.url = url;
    alert.key = fmt::format("given_up:{}:{}:{}", run, now_us, sha256_hex(url).substr(0, 12));
    RILLE_CHECK(Alerts::add(db, alert, now_us));
  }
  return {};
}

}  // namespace

// A run that should be running but that no process runs.
struct Watch::Candidate {
  std::string id, script, why;
  bool fresh = false;   // a schedule created the run, and no process has started it yet
  bool handed = false;  // the run was suspended, and the user has handed it over to the watch
  std::int64_t tries = 0, next_us = 0, seen = 0, entries = 0, alive_us = 0;
};

Async<> hand_over(store::Journal& journal, std::string run, std::int64_t now_us) {
  auto taken = std::make_shared<bool>(false);
  store::Journal::Write write = [run, now_us, taken](store::Db& db) -> Result<> {
    RILLE_CHECK(
        db.run("INSERT OR REPLACE INTO watched(run,tries,next_us,seen,why) "
               "SELECT id,0,?2,0,'handed over '||epoch FROM runs "
               "WHERE id=?1 AND state='suspended' AND mode='durable' AND parent='' AND epoch>0",
               {run, now_us}));
    *taken = db.changes() == 1;
    return {};
  };
  RILLE_CO_CHECK(co_await journal.commit(std::move(write)));
  if (*taken) co_return success();
  co_return make_error(ErrorKind::invalid, fmt::format("run {} is not suspended", run),
                       "rille watch resumes killed runs without being asked; rille ps shows the state of each run");
}

Watch::Watch(Loop& loop, store::Journal& journal, WatchOptions options, WatchWorld world)
    : loop_(loop), journal_(journal), options_(options), world_(std::move(world)), schedules_(loop, journal) {}

void Watch::failed(const char* what, const Error& why) {
  std::string text = std::string(what) + why.message;
  if (std::exchange(last_failure_, text) == text) return;
  Value event;
  event.set("event", "failed").set("what", what).set("error", error_to_value(why));
  world_.tell(event);
}

// The watch's loop. It resumes runs before reaping, so that a resumed run keeps its machines.
Async<> Watch::run(CancelToken token) {
  std::int64_t gc_ns = INT64_MIN;
  while (true) {
    RILLE_CO_CHECK(co_await look());
    std::int64_t now_ns = loop_.clock().monotonic_ns();
    if (gc_ns == INT64_MIN || now_ns >= gc_ns) {
      RILLE_CO_CHECK(co_await reap());
      gc_ns = now_ns + (reaped_ ? options_.gc_ms : std::min(options_.gc_ms, watch_again_ms)) * 1'000'000;
    }
    if (token.cancelled()) co_return token.reason();
    std::int64_t rest_ms = options_.look_ms;
    if (Result<std::int64_t> next = schedules_.next_us(); next && *next != INT64_MAX)
      rest_ms = std::clamp<std::int64_t>((*next - now_us() + 999) / 1000, 50, rest_ms);
    RILLE_CO_CHECK(co_await sleep_for(loop_, rest_ms, token));
  }
}

Async<> Watch::reap() {
  Result<> done = co_await world_.reap();
  reaped_ = done.ok();
  if (!done) failed("the reaper", done.error());
  co_return success();
}

Async<> Watch::look() {
  if (world_.deliver) world_.deliver();
  Result<std::vector<Tick>> ticks = co_await schedules_.look();
  if (!ticks) failed("schedules", ticks.error());
  if (ticks)
    for (const Tick& t : *ticks) {
      if (!t.run.empty()) continue;  // a created run is reported when it starts
      Value event;
      if (!t.cancel.empty()) {
        if (!world_.alive(t.cancel) || !interrupted_.insert(t.cancel).second) continue;
        if (Result<> sent = world_.interrupt(t.cancel); !sent) {
          failed("runs", sent.error());
          continue;
        }
        event.set("event", "cancelled").set("run", t.cancel).set("schedule", t.schedule);
        event.set("why", "the next one is due");
        world_.tell(event);
        continue;
      }
      event.set("event", "skipped").set("schedule", t.schedule).set("due", format_utc(t.due_us)).set("why", t.why);
      world_.tell(event);
    }
  Result<std::vector<Candidate>> runs = candidates();
  if (!runs) failed("runs", runs.error());
  if (!runs) co_return success();
  for (Candidate& c : *runs) {
    if (world_.alive(c.id)) continue;
    Result<> done = co_await revive(std::move(c));
    if (!done) failed("runs", done.error());
  }
  co_return success();
}

Result<std::vector<Watch::Candidate>> Watch::candidates() const {
  std::vector<Candidate> out;
  RILLE_CHECK(journal_.reader().query(
      "SELECT r.id,r.script,r.state,r.updated_us,COALESCE(w.tries,0),COALESCE(w.next_us,0),COALESCE(w.seen,0),"
      "COALESCE(w.why,''),COALESCE(e.id & 0xffffffff,0),COALESCE(e.ended_us,0),r.epoch "
      "FROM runs r LEFT JOIN watched w ON w.run=r.id LEFT JOIN entries e ON e.id=(SELECT max(id) FROM entries "
      "WHERE id>=(r.number<<32) AND id<((r.number+1)<<32)) WHERE r.mode='durable' AND r.parent='' AND "
      "r.host_modules='' AND "
      "(r.state='running' OR (r.state='suspended' AND w.run IS NOT NULL AND (r.epoch=0 OR "
      "w.why='handed over '||r.epoch))) ORDER BY r.number",
      {}, [&](const store::Row& row) {
        Candidate c;
        const bool suspended = row.text(2) == "suspended";
        c.id = row.text(0), c.script = row.text(1), c.fresh = suspended && row.integer(10) == 0;
        c.handed = suspended && !c.fresh;
        c.alive_us = std::max(row.integer(3), row.integer(9));
        c.tries = row.integer(4), c.next_us = row.integer(5), c.seen = row.integer(6), c.why = row.text(7);
        c.entries = row.integer(8);
        if (c.handed) c.alive_us = std::max(c.alive_us, c.next_us);  // the run counts as alive until it was handed over
        out.push_back(std::move(c));
      }));
  return out;
}

Result<std::string> Watch::objection(const Candidate& c) const {
  if (c.tries >= options_.tries_max) return fmt::format("its process has died {} times without progress", c.tries);
  if (now_us() - c.alive_us > options_.resume_within_ms * 1000)
    return fmt::format("its last sign of life was at {}", format_utc(c.alive_us));
  Result<std::string> source = world_.read(c.script);
  if (!source) return fmt::format("its script cannot be read: {}", source.error().message);
  std::string pinned;
  RILLE_CHECK(journal_.reader().query("SELECT sha256 FROM sources WHERE run=? AND module=?",
                                      {c.id, std::filesystem::path(c.script).filename().string()},
                                      [&](const store::Row& row) { pinned = row.text(0); }));
  if (!pinned.empty() && pinned != sha256_hex(*source)) return fmt::format("{} has changed since it began", c.script);
  return std::string();
}

Async<> Watch::revive(Candidate c) {
  if (!c.fresh && !options_.resumes) co_return success();
  if (c.entries > c.seen) c.tries = 0, c.next_us = 0;
  std::int64_t now_ns = loop_.clock().monotonic_ns();
  if (auto alone = left_alone_.find(c.id); alone != left_alone_.end() && now_ns < alone->second) co_return success();
  if (now_us() < c.next_us) co_return success();
  RILLE_CO_TRY(std::string why, objection(c));
  left_alone_.erase(c.id);
  if (!why.empty()) left_alone_[c.id] = now_ns + look_again_ns;
  if (!why.empty() && why == c.why) co_return success();  // this reason was reported already
  std::int64_t tries = why.empty() ? c.tries + 1 : c.tries;
  std::int64_t next_us = why.empty() ? now_us() + pause_us(tries - 1) : 0;
  // A handed-over run keeps the text in `why` until it runs, because the text contains the run's old epoch.
  const std::string noted = why.empty() && c.handed ? c.why : why;
  // The try is counted before the start, in case the start kills this process. The run may have ended since the query.
  auto mine = std::make_shared<bool>(false);
  store::Journal::Write write = [id = c.id, tries, next_us, seen = c.entries, noted, mine, why,
                                 now = now_us()](store::Db& db) -> Result<> {
    RILLE_CHECK(
        db.run("INSERT OR REPLACE INTO watched(run,tries,next_us,seen,why) "
               "SELECT id,?2,?3,?4,?5 FROM runs WHERE id=?1 AND state IN ('running','suspended')",
               {id, tries, next_us, seen, noted}));
    *mine = db.changes() == 1;
    if (!*mine) return {};
    if (!why.empty()) return alert_given_up(db, id, why, now);
    // A fresh updated_us keeps the run's leases from being reaped until the new process sends its first heartbeat.
    return db.run("UPDATE runs SET updated_us=max(updated_us,?) WHERE id=?", {now, id});
  };
  RILLE_CO_CHECK(co_await journal_.commit(std::move(write)));
  if (!*mine) co_return success();
  Value event;
  event.set("run", c.id).set("script", c.script);
  if (!why.empty()) {
    event.set("event", "given_up").set("why", why);
  } else if (Result<> started = world_.start(c.id, c.script); !started) {
    event.set("event", "failed").set("what", "starting").set("error", error_to_value(started.error()));
  } else {
    event.set("event", "started").set("try", tries).set("resumed", !c.fresh);
  }
  world_.tell(event);
  co_return success();
}

}  // namespace rille::engine
