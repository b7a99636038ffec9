#include "tests/sim/world.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "runtime/base/id.hpp"

namespace rille::torture {

namespace {
constexpr int deaths_max = 12;
constexpr std::int64_t world_ends_us = 120LL * 86'400'000'000;
}  // namespace

World::World(std::uint64_t s, bool is_calm, bool with_trace)
    : seed(s), calm(is_calm), trace(with_trace), dice(Dice(s).of("torture")) {
  auto options = calm ? provider::sim::Options::calm(seed) : provider::sim::Options::hostile(seed);
  std::filesystem::path memory = "/dev/shm", root = std::filesystem::temp_directory_path();
  if (std::filesystem::is_directory(memory)) root = memory;
  home_ = fmt::format("{}/rille-torture-{}-{}", root.string(), getpid(), seed);
  std::filesystem::remove_all(home_);
  sim = engine::Simulation::create(time, options, home_).value();
  sim->gate = [this](const char* where, bool done) { return place(where, done); };
  time.end_at(time.wall_us() + world_ends_us);
  constexpr double rates[] = {0, 1.0 / 12, 1.0 / 40, 1.0 / 120};
  death_rate_ = calm ? 0 : rates[dice.bits("death rate") % 4];
}

World::~World() { std::filesystem::remove_all(home_); }

void World::tell(const std::string& told) {
  std::string line = told;  // the home's place is not the world's doing
  for (std::size_t at; (at = line.find(home_)) != std::string::npos;) line.replace(at, home_.size(), "~");
  trail = sha256_hex(trail + line).substr(0, 16);
  if (trace) fmt::print("{:>12.3f}  {}\n", static_cast<double>(time.monotonic_ns()) / 1e9, line);
}

// Where the process may die.
bool World::place(const char* where, bool done) {
  if (dead_) return false;
  ++places_;
  if (!may_die_ || deaths_ >= deaths_max || !dice.chance(death_rate_, "die", static_cast<std::uint64_t>(places_)))
    return true;
  ++deaths_;
  dead_ = true;
  ++seen[fmt::format("died {} a {}", done ? "after" : "before", std::string(where) == "journal" ? "transaction"
                                                                                                 : "provider call")];
  if (trace) fmt::print("{:>12.3f}  DEATH {} ({} {})\n", static_cast<double>(time.monotonic_ns()) / 1e9, deaths_,
                        done ? "after" : "before", where);
  return false;
}

// One process, to the end of the run or its own.
std::optional<Result<Value>> World::process(const Kind& kind) {
  dead_ = false;
  auto loop = Loop::create_virtual(time).value();
  auto engine = engine::Engine::open_simulated(*loop, *sim).value();
  engine::RunHooks hooks;
  hooks.event = [this, &kind](const Value& e) {
    ++seen["event " + e.text("event")];
    if (trace || e.text("event") != "checkpoint") tell(e.to_json());
    std::string machine = fmt::format("{}-g{}", e.text("lease"), e.integer("generation"));
    if (e.text("event") == "call_left" && e.boolean("kept") && e.integer("step") % 600)
      ++seen["a notice brought a checkpoint of its own"];
    if (const auto* box = sim->cloud.find(e.text("machine")); e.text("event") == "replacing" && box && box->notice_us)
      if (sim->cloud.now_us() >= box->notice_us && box->alive(sim->cloud.now_us()))
        ++seen["moved before the machine was lost"];
    if (e.text("event") == "set_up_again") set_up[machine].insert(e.text("what"));
    if (e.text("event") == "call_moved" && e.text("call") == "train" && std::string_view(kind.name) == "replacement") {
      if (set_up[machine].size() == 2) ++seen["a moved call found its machine set up"];
      else wrong = "a call went on at " + machine + ", which is not set up";
    }
  };
  std::optional<Result<Value>> out;
  std::unique_ptr<Run> run;
  std::unique_ptr<CppGuest> guest;
  auto whole = [&]() -> Task<void> {
    engine::RunSpec spec;
    spec.script = kind.name;
    spec.id = "r";
    Result<std::unique_ptr<Run>> made = make_error(ErrorKind::internal, "");
    if (engine->run("r")) made = co_await engine->resume("r", hooks);
    else made = co_await engine->start(std::move(spec), hooks);
    if (!made) {
      out.emplace(made.error());
      co_return;
    }
    run = std::move(*made);
    guest = std::make_unique<CppGuest>(*run);
    FunctionRef main = guest->function(kind.script(Process{*this, *run, *guest}));
    Value none;
    out.emplace(co_await run->execute(*guest, main, none));
  };
  loop->spawn(whole());
  loop->run_until([&] { return out.has_value() || dead_; });
  if (!out && !dead_) wrong = "the process waits for something that never comes";
  if (dead_) out.reset();
  loop->abandon_tasks();
  run.reset();
  guest.reset();
  engine.reset();
  return out;
}

// `rille gc` in a process of its own. It may die, too.
void World::reap(bool in_background) {
  dead_ = false;
  auto loop = Loop::create_virtual(time).value();
  auto engine = engine::Engine::open_simulated(*loop, *sim).value();
  bool over = false;
  auto whole = [&]() -> Task<void> {
    engine::ReapSpec spec;
    spec.in_background = in_background;
    auto report = co_await engine->reap(std::move(spec));
    over = true;
    if (!report) co_return;
    seen["reaped a lease"] += static_cast<std::int64_t>(report->released.size());
    seen["reaper met a machine that should be gone"] += static_cast<std::int64_t>(report->revived.size());
    seen["reaper failed"] += static_cast<std::int64_t>(report->failed.size() + report->errors.size());
  };
  loop->spawn(whole());
  loop->run_until([&] { return over || dead_; });
  if (!over && !dead_) wrong = "the reaper waits for something that never comes";
  loop->abandon_tasks();
  engine.reset();
}

Result<Value> World::result() {
  auto loop = Loop::create_virtual(time).value();
  auto engine = engine::Engine::open_simulated(*loop, *sim).value();
  RILLE_TRY(engine::RunRow row, engine->run("r"));
  if (row.error) return *row.error;
  return row.result;
}

std::string World::live(const Kind& kind, const std::string& expected) {
  std::optional<Result<Value>> out;
  for (int n = 0; !out; ++n) {
    out = process(kind);
    if (!wrong.empty()) return wrong;
    if (out) break;
    constexpr std::int64_t downtimes_ms[] = {0, 1'000, 90'000, 3'600'000};
    auto number = static_cast<std::uint64_t>(n);
    time.pass(downtimes_ms[dice.bits("down", number) % 4]);
    if (dice.chance(0.1, "clock", number)) time.set_wall_back(dice.between(1, 5'000, "clock back", number));
    if (dice.chance(0.2, "gc", number)) reap(dice.chance(0.5, "background", number));
    ++seen["resumed"];
  }
  if (std::string bad = settle(); !bad.empty()) return bad;
  Result<Value> recorded = result();
  std::string got = recorded ? recorded->to_json() : "error " + recorded.error().summary();
  if (got != expected) return fmt::format("the result is {}, and {} without faults and deaths", got, expected);
  return wrong;
}

// The faults are over; whoever looks after it finds what is left. Within the shortest ttl: no expiry does our work.
std::string World::settle() {
  may_die_ = false;
  sim->cloud.end_faults();
  for (int i = 0; i < 3; ++i) {
    reap(false);
    time.pass(200'000);
  }
  auto loop = Loop::create_virtual(time).value();
  auto engine = engine::Engine::open_simulated(*loop, *sim).value();
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

// Once the provider's bills are in, the ledger is their sum, to the micro-dollar: also with machines that came and went
// unseen, between a create whose answer was lost and the next list.
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
  return "";
}

std::string World::digest() const {
  return fmt::format("{} {} {} {} {}", trail, time.monotonic_ns(), places_, sim->cloud.counts.calls,
                     sim->cloud.bill_micros());
}

}  // namespace rille::torture
