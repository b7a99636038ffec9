#include "tests/sim/world.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "runtime/core/base/id.hpp"
#include "runtime/core/store/audit.hpp"
#include "runtime/workflow/lease/volumes.hpp"

namespace rille::torture {

namespace {
constexpr std::int64_t world_ends_us = 120LL * 86'400'000'000;

std::string_view kind_of(const std::string& where) {
  return where == "journal" ? "transaction" : where.starts_with("provider") ? "provider call" : "request to an agent";
}

// Child runs of a script are reported and loaded like the script.
class Children final : public engine::ChildPrograms {
 public:
  Children(World& world, const Script& script, Loop& loop, std::function<void(const Value&)> event)
      : world_(world), script_(script), loop_(loop), event_(std::move(event)) {}
  engine::RunHooks hooks(const std::string&) override {
    engine::RunHooks h;
    h.event = event_;
    return h;
  }
  Result<std::unique_ptr<engine::Program>> load(Run& child, const std::string& script) override {
    return script_.load(world_, loop_, child, script);
  }

 private:
  World& world_;
  const Script& script_;
  Loop& loop_;
  std::function<void(const Value&)> event_;
};
}  // namespace

std::string scratch_path(const std::string& name) {
  return fmt::format("{}/rille-{}-{}", std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp", name, getpid());
}

World::World(Conditions c) : conditions(std::move(c)), dice(Dice(conditions.cloud.seed).of("torture")) {
  std::filesystem::remove_all(conditions.home);
  sim = engine::Simulation::create(time, conditions.cloud, conditions.home).value();
  sim->gate = [this](const std::string& where, bool done) { return place(where, done); };
  time.end_at(time.wall_us() + world_ends_us);
}

World::~World() { std::filesystem::remove_all(conditions.home); }

void World::tell(const std::string& told) {
  std::string line = told;  // the home's place is not the world's doing
  for (std::size_t at; (at = line.find(conditions.home)) != std::string::npos;)
    line.replace(at, conditions.home.size(), "~");
  trail_ = sha256_hex(trail_ + line).substr(0, 16);
  if (conditions.trace) fmt::print("{:>12.3f}  {}\n", static_cast<double>(time.monotonic_ns()) / 1e9, line);
}

bool World::place(const std::string& where, bool done) {
  if (dead) return false;
  ++places_;
  ++lives.back();
  const Place here{where, done, static_cast<int>(lives.size()), lives.back(), places_};
  if (conditions.trace)
    fmt::print("{:>12.3f}  place {} ({} {})\n", static_cast<double>(time.monotonic_ns()) / 1e9, here.number,
               done ? "after" : "before", where);
  if (!may_die_ || !conditions.dies || !conditions.dies(here)) return true;
  ++deaths_;
  dead = true;
  ++seen[fmt::format("died {} a {}", done ? "after" : "before", kind_of(where))];
  ++seen[fmt::format("died {} {}", done ? "after" : "before", where)];
  if (conditions.trace) fmt::print("{:>12}  DEATH {}\n", "", deaths_);
  return false;
}

void World::body_runs(const std::string& step, bool once) {
  if (finished.contains(step)) wrong = "the finished step " + step + " ran again";
  if (++effects[step] > 1 && once) wrong = "what happens once happened again: " + step;
}

void World::heard(const Script& script, const Value& e) {
  const std::string name = e.text("event");
  ++seen["event " + name];
  if (conditions.trace || name != "checkpoint") tell(e.to_json());
  if (name == "call_left" && e.boolean("kept") && e.integer("step") % 600)
    ++seen["a notice brought a checkpoint of its own"];
  if (const auto* box = sim->cloud.find(e.text("machine")); name == "replacing" && box && box->notice_us)
    if (sim->cloud.now_us() >= box->notice_us && box->alive(sim->cloud.now_us()))
      ++seen["moved before the machine was lost"];
  if (name == "log" && e.text("message") == "effect") body_runs(e["fields"].text("token"), e["fields"].boolean("once"));
  if (name == "log" && e.text("message") == "finished") body_finished(e["fields"].text("token"));
  if (name == "log" && e.text("message") == "wrong") wrong = e["fields"].text("what");
  if (script.event) script.event(*this, e);
}

// One process, to the end of the run or its own.
std::optional<Result<Value>> World::process(const Script& script) {
  dead = false;
  lives.push_back(0);
  inside.clear();
  auto loop = Loop::create_virtual(time).value();
  auto engine = engine::Engine::open_simulated(*loop, *sim).value();
  engine::RunHooks hooks;
  hooks.event = [this, &script](const Value& e) {
    if (!dead) heard(script, e);
  };
  hooks.children = std::make_shared<Children>(*this, script, *loop, hooks.event);
  if (conditions.trace) hooks.print = [this](std::string_view text) { tell("prints: " + std::string(text)); };
  std::optional<Result<Value>> out;
  std::unique_ptr<Run> run;
  std::unique_ptr<engine::Program> program;
  auto whole = [&]() -> Task<void> {
    engine::RunSpec spec;
    spec.script = script.path.empty() ? script.name : script.path;
    spec.id = "r";
    Result<std::unique_ptr<Run>> made = make_error(ErrorKind::internal, "");
    if (engine->run("r")) made = co_await engine->resume("r", hooks);
    else made = co_await engine->start(std::move(spec), hooks);
    if (!made) {
      out.emplace(made.error());
      co_return;
    }
    run = std::move(*made);
    Result<std::unique_ptr<engine::Program>> loaded = script.load(*this, *loop, *run, script.path);
    if (!loaded) {
      out.emplace(loaded.error());
      co_return;
    }
    program = std::move(*loaded);
    Value none;
    out.emplace(co_await run->execute(program->guest(), program->main(), none));
  };
  std::unique_ptr<Timer> person;
  if (script.cancel_ms) {
    std::int64_t in_ms = std::max<std::int64_t>(0, script.cancel_ms - time.monotonic_ns() / 1'000'000);
    person = std::make_unique<Timer>(*loop, in_ms, [&run] {
      if (run) run->cancel(make_error(ErrorKind::cancelled, "by hand"));
    });
  }
  loop->spawn(whole());
  loop->run_until([&] { return out.has_value() || dead; });
  if (!out && !dead) wrong = "the process waits for something that never comes";
  if (dead) out.reset();
  person.reset();
  loop->abandon_tasks();
  program.reset();
  run.reset();
  engine.reset();
  return out;
}

bool World::reap(bool in_background, const std::string& now) {
  dead = false;
  lives.push_back(0);
  auto loop = Loop::create_virtual(time).value();
  auto engine = engine::Engine::open_simulated(*loop, *sim).value();
  bool over = false;
  auto whole = [&]() -> Task<void> {
    engine::ReapSpec spec;
    spec.in_background = in_background;
    spec.now = now;
    auto report = co_await engine->reap(std::move(spec));
    over = true;
    if (!report) co_return;
    seen["reaped a lease"] += static_cast<std::int64_t>(report->released.size());
    seen["reaper met a machine that should be gone"] += static_cast<std::int64_t>(report->revived.size());
    seen["reaper failed"] += static_cast<std::int64_t>(report->failed.size() + report->errors.size());
  };
  loop->spawn(whole());
  loop->run_until([&] { return over || dead; });
  if (!over && !dead) wrong = "the reaper waits for something that never comes";
  loop->abandon_tasks();
  engine.reset();
  return !dead;
}

// As `rille signal` in a process of its own: it finds the run, or comes again.
void World::send_signal(std::int64_t after_ms, std::string name, std::string json) {
  time.add(after_ms, [this, name, json] {
    bool there = false;
    (void)sim->disk->query("SELECT 1 FROM runs WHERE id='r'", {}, [&](const store::Row&) { there = true; });
    if (!there) return send_signal(1000, name, json);
    Result<> sent = sim->disk->run("INSERT INTO inbox(run,name,message_id,payload,at_us) VALUES('r',?1,?1,?2,?3)",
                                   {name, json, time.wall_us()});
    if (!sent) wrong = sent.error().summary();
  });
}

std::string World::outcome() {
  auto loop = Loop::create_virtual(time).value();
  auto engine = engine::Engine::open_simulated(*loop, *sim).value();
  Result<engine::RunRow> row = engine->run("r");
  if (!row) return "no run";
  if (row->error) return "error " + row->error->summary();
  return row->result.to_json();
}

std::string World::live(const Script& script) {
  if (script.prepare) script.prepare(*this);
  bool over = false;
  while (!over && wrong.empty()) {
    if (over = process(script).has_value(); over || !wrong.empty()) break;
    if (conditions.meanwhile) conditions.meanwhile(*this, deaths_);
    if (alone) break;
    ++seen["resumed"];
  }
  if (!over && wrong.empty()) leave_to_reaper();
  if (!wrong.empty()) return wrong;
  if (std::string bad = settle(); !bad.empty()) return bad;
  if (std::string got = outcome(); over && got != script.result)
    return fmt::format("the result is {}, and {} without faults and deaths", got, script.result);
  return wrong;
}

void World::leave_to_reaper() {
  ++seen["left alone"];
  const std::string run = outcome() == "no run" ? "" : "r";
  while (wrong.empty() && !reap(false, run))
    if (conditions.meanwhile) conditions.meanwhile(*this, deaths_);
}

// The faults are over; a process that looks later finds the leftovers. Within the shortest ttl, so that no expiry does
// the work.
std::string World::settle() {
  may_die_ = false;
  sim->cloud.end_faults();
  for (int i = 0; i < 3; ++i) {
    reap(false);
    time.pass(200'000);
  }
  auto loop = Loop::create_virtual(time).value();
  auto engine = engine::Engine::open_simulated(*loop, *sim).value();
  if (std::string bad = delete_kept(*loop, *engine); !bad.empty()) return bad;
  if (int alive = sim->cloud.alive()) return fmt::format("{} machines are alive", alive);
  for (const auto& [tag, n] : sim->cloud.made())
    if (n > 1) return fmt::format("{} machines were made for {}", n, tag);
  auto leases = engine->leases().all(true);
  if (!leases) return leases.error().summary();
  for (const lease::Lease& l : *leases) {
    if (l.state != "released") return fmt::format("lease '{}' is {}", l.name, l.state);
    if (l.generation > 1) ++seen["second generation"];
  }
  return check_books(*loop, *engine);
}

// As `rille volume rm` by a person. A run leaves a kept volume that it could not delete, or if it was left alone. Each
// volume of the cloud is one of those: none is lost.
std::string World::delete_kept(Loop& loop, engine::Engine& engine) {
  auto kept = lease::open_volumes(engine.journal().reader());
  if (!kept) return kept.error().summary();
  if (const int there = sim->cloud.volumes(); there != static_cast<int>(kept->size()))
    return fmt::format("{} volumes cost, and the journal has {}", there, kept->size());
  for (const lease::Lease& l : *kept) {
    if (!lease::is_kept(l)) return fmt::format("the volume '{}' should have ended with its scope", l.name);
    if (auto deleted = run_blocking(loop, engine.leases().release(l.id, nullptr)); !deleted)
      return deleted.error().summary();
    ++seen["a kept volume outlived its run"];
  }
  return "";
}

// Once the provider's bills are in, the ledger is their sum, to the micro-dollar: also with machines that came and went
// unseen, between a create whose answer was lost and the next list. And the audit trail is whole.
std::string World::check_books(Loop& loop, engine::Engine& engine) {
  auto count = [&](std::set<std::string>& machines) -> Result<Micros> {
    Micros sum = 0;
    RILLE_TRY(auto leases, engine.leases().all(true));
    for (const lease::Lease& l : leases) {
      sum += l.spent_micros(time.wall_us());
      for (const lease::Tenure& t : l.tenures) machines.insert(t.machine_id);
    }
    return sum;
  };
  std::set<std::string> seen_before, known;
  Result<Micros> before = count(seen_before);
  if (auto settled = run_blocking(loop, engine.leases().reconcile({})); !settled) return settled.error().summary();
  Result<Micros> ledger = count(known);
  if (!before || !ledger) return "the ledger cannot be read";
  const Micros bill = sim->cloud.bill_micros();
  if (known.size() > seen_before.size()) ++seen["a machine came and went unseen"];
  if (bill) ++seen["the ledger was the bill"];
  if (bill && *before == bill) ++seen["so was the estimate"];
  if (*ledger != bill) return fmt::format("the ledger says {}, the bill {} micro-dollars", *ledger, bill);
  Result<store::Trail> trail = store::check_trail(*sim->disk);
  if (!trail) return trail.error().summary();
  if (trail->broken) return fmt::format("the audit trail is broken at row {}", *trail->broken);
  return "";
}

std::string World::digest() const {
  return fmt::format("{} {} {} {} {}", trail_, time.monotonic_ns(), places_, sim->cloud.counts.calls,
                     sim->cloud.bill_micros());
}

}  // namespace rille::torture
