#include "runtime/workflow/engine/schedules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <deque>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/engine/engine.hpp"

namespace rille::engine {

namespace {

constexpr std::int64_t late_us = 60'000'000;  // a due instant not handled within this time counts as missed
constexpr std::size_t ticks_max = 100;        // most due instants handled per schedule in one pass

Result<> check(const Schedule& s) {
  bool good = !s.name.empty() && s.name.size() <= 60 && std::isalnum(static_cast<unsigned char>(s.name[0]));
  for (char c : s.name) good = good && (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_');
  if (!good || s.name == "last")
    return make_error(ErrorKind::invalid, fmt::format("'{}' cannot be the name of a schedule", s.name),
                      "use up to 60 letters, digits and dashes");
  auto one_of = [](const std::string& word, std::initializer_list<const char*> known) {
    return std::any_of(known.begin(), known.end(), [&](const char* k) { return word == k; });
  };
  if (!one_of(s.missed, {"skip", "one", "all"}))
    return make_error(ErrorKind::invalid, fmt::format("missed = '{}': expected skip, one or all", s.missed));
  if (!one_of(s.overlap, {"skip", "queue", "cancel", "allow"}))
    return make_error(ErrorKind::invalid,
                      fmt::format("overlap = '{}': expected skip, queue, cancel or allow", s.overlap));
  if (s.missed == "all" && (s.overlap == "skip" || s.overlap == "cancel"))
    return make_error(ErrorKind::invalid, fmt::format("missed = all cannot be combined with overlap = {}", s.overlap),
                      "use missed = all with overlap = queue (one after the other) or allow (all at a time)");
  Result<Timing> when = Timing::parse(s.when);
  if (!when) return when.error();
  return {};
}

// Formats an instant in UTC as 20261121T030000Z.
std::string stamp(std::int64_t us) {
  std::string out;
  for (char c : format_utc(us))
    if (c != '-' && c != ':') out += c;
  return out;
}

}  // namespace

Value Schedule::to_value() const {
  RunRow of;
  of.args = args;
  Value v;
  v.set("name", name).set("when", when).set("script", script).set("args", of.shown_args()).set("missed", missed);
  v.set("overlap", overlap).set("created", format_utc(created_us));
  if (!tag.empty()) v.set("tag", tag);
  if (!last_run.empty()) v.set("last_run", last_run);
  if (Result<Timing> t = Timing::parse(when)) v.set("next", format_utc(t->next_us(after_us, created_us)));
  return v;
}

Async<> Schedules::add(Schedule schedule) {
  RILLE_CO_CHECK(check(schedule));
  auto s = std::make_shared<Schedule>(std::move(schedule));
  s->created_us = s->after_us = now_us();
  store::Journal::Write write = [s](store::Db& db) -> Result<> {
    std::string args = s->args.to_json();
    RILLE_CHECK(
        db.run("INSERT OR IGNORE INTO schedules(name,timing,script,args,tag,missed,overlap,created_us,after_us)"
               " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?8)",
               {s->name, s->when, s->script, args, s->tag, s->missed, s->overlap, s->created_us}));
    if (db.changes() == 1) return {};
    return make_error(ErrorKind::state, fmt::format("there is a schedule '{}' already", s->name),
                      fmt::format("remove it first: rille schedule remove {}", s->name));
  };
  co_return co_await journal_.commit(std::move(write));
}

Async<> Schedules::remove(std::string name) {
  RILLE_CO_TRY(std::vector<Schedule> known, all());
  std::vector<std::string> names;
  for (const Schedule& s : known) names.push_back(s.name);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    std::string near = did_you_mean(name, names);
    co_return make_error(ErrorKind::invalid, fmt::format("there is no schedule '{}'", name),
                         near.empty() ? "list them with `rille schedule`" : fmt::format("did you mean {}?", near));
  }
  store::Journal::Write write = [name](store::Db& db) { return db.run("DELETE FROM schedules WHERE name=?", {name}); };
  co_return co_await journal_.commit(std::move(write));
}

Result<std::vector<Schedule>> Schedules::all() const {
  std::vector<Schedule> out;
  Result<> damaged;
  RILLE_CHECK(journal_.reader().query(
      "SELECT name,timing,script,args,tag,missed,overlap,created_us,after_us,last_run FROM schedules ORDER BY name", {},
      [&](const store::Row& row) {
        Schedule s;
        s.name = row.text(0), s.when = row.text(1), s.script = row.text(2);
        Result<Value> args = Value::from_json(row.text(3));
        if (!args) damaged = args.error();
        else s.args = std::move(*args);
        s.tag = row.text(4), s.missed = row.text(5), s.overlap = row.text(6);
        s.created_us = row.integer(7), s.after_us = row.integer(8), s.last_run = row.text(9);
        out.push_back(std::move(s));
      }));
  RILLE_CHECK(damaged);
  return out;
}

Result<std::int64_t> Schedules::next_us() const {
  RILLE_TRY(std::vector<Schedule> schedules, all());
  std::int64_t next = INT64_MAX;
  for (const Schedule& s : schedules) {
    RILLE_TRY(Timing t, Timing::parse(s.when));
    next = std::min(next, t.next_us(s.after_us, s.created_us));
  }
  return next;
}

Result<bool> Schedules::runs_still(const Schedule& s) const {
  bool runs = false;
  RILLE_CHECK(
      journal_.reader().query("SELECT 1 FROM runs LEFT JOIN watched ON run=id WHERE id=? "
                              "AND state IN ('running','suspended') AND COALESCE(why,'')=''",
                              {s.last_run}, [&](const store::Row&) { runs = true; }));
  return runs;
}

Async<std::vector<Tick>> Schedules::look() {
  std::vector<Tick> ticks;
  RILLE_CO_TRY(std::vector<Schedule> schedules, all());
  for (Schedule& s : schedules) RILLE_CO_CHECK(co_await look_at(std::move(s), ticks));
  co_return ticks;
}

Async<> Schedules::look_at(Schedule s, std::vector<Tick>& ticks) {
  RILLE_CO_TRY(Timing timing, Timing::parse(s.when));
  std::int64_t now = now_us();
  std::deque<std::int64_t> due;
  std::int64_t at = s.after_us;
  while ((at = timing.next_us(at, s.created_us)) <= now) {
    due.push_back(at);
    if (due.size() > ticks_max) due.pop_front();  // forget the oldest: this machine may have been off for a year
  }
  if (due.empty()) co_return success();
  RILLE_CO_TRY(bool busy, runs_still(s));
  if (busy && s.overlap == "cancel") {
    Tick tick;
    tick.schedule = s.name, tick.cancel = s.last_run, tick.due_us = due.back();
    ticks.push_back(std::move(tick));
  }
  if (busy && (s.overlap == "queue" || s.overlap == "cancel")) co_return success();
  for (std::size_t i = 0; i < due.size(); ++i) {
    auto tick = std::make_shared<Tick>();
    tick->schedule = s.name;
    tick->due_us = due[i];
    bool last = i + 1 == due.size();
    if (s.missed == "skip" && due[i] < now - late_us) tick->why = "no `rille watch` ran at that time";
    else if (s.missed != "all" && !last) tick->why = "a later one is due, too";
    else if (busy && s.overlap == "skip") tick->why = fmt::format("run {} has not ended", s.last_run);
    else tick->run = fmt::format("{}-{}", s.name, stamp(due[i]));
    auto schedule = std::make_shared<Schedule>(s);
    auto mine = std::make_shared<bool>(false);
    store::Journal::Write write = [tick, schedule, mine, now](store::Db& db) -> Result<> {
      const Schedule& of = *schedule;
      RILLE_CHECK(
          db.run("UPDATE schedules SET after_us=?1, last_run=CASE WHEN ?2='' THEN last_run ELSE ?2 END "
                 "WHERE name=?3 AND after_us=?4 AND created_us=?5",
                 {tick->due_us, tick->run, of.name, of.after_us, of.created_us}));
      *mine = db.changes() == 1;
      if (!*mine || tick->run.empty()) return {};
      std::string args = of.args.to_json();
      RILLE_CHECK(
          db.run("INSERT OR IGNORE INTO runs"
                 "(id,script,mode,state,epoch,args,created_us,updated_us,host,pid,tag) "
                 "VALUES(?1,?2,'durable','suspended',0,?3,?4,?4,'',0,?5)",
                 {tick->run, of.script, args, now, of.tag}));
      return db.run("INSERT OR IGNORE INTO watched(run,tries,next_us,seen) VALUES(?,0,0,0)", {tick->run});
    };
    RILLE_CO_CHECK(co_await journal_.commit(std::move(write)));
    if (!*mine) co_return success();  // another process has handled the instant, or the schedule was removed
    s.after_us = due[i];
    if (!tick->run.empty()) s.last_run = tick->run;
    bool started = !tick->run.empty();
    ticks.push_back(*tick);
    if (started && s.overlap == "queue") co_return success();  // the later instants wait for this run
  }
  co_return success();
}

}  // namespace rille::engine
