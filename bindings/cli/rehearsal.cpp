#include "bindings/cli/rehearsal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "bindings/cli/grants.hpp"
#include "bindings/cli/runs.hpp"
#include "bindings/host/program.hpp"
#include "bindings/lua/open.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/provider/sim/listed.hpp"

namespace rille::cli {

namespace {

namespace fs = std::filesystem;

// The objects of a rehearsal, in the order in which they are constructed.
struct Stage {
  VirtualTime time;
  std::unique_ptr<engine::Simulation> world;
  std::unique_ptr<Loop> loop;
  std::unique_ptr<engine::Engine> engine;
  host::Interrupter interrupter{16};  // rehearsals never interrupt Lua code
  std::unique_ptr<engine::Run> run;
  std::unique_ptr<host::LuaHost> host;
  ~Stage() {
    if (loop) loop->abandon_tasks();  // suspended tasks refer to the run, so destroy the tasks first
  }
};

host::HostOptions rehearsal_host_options(const std::string& directory, const Rehearsal& what) {
  host::HostOptions o;
  o.rehearsal = what.unknown_calls_end_at_once ? host::Rehearsal::plan : host::Rehearsal::simulate;
  o.jit = host::Jit::on_request;
  o.grants = what.grants;
  o.script_directory = directory;
  o.open = lua::openers();
  return o;
}

// Rehearses the child runs that the script starts, in the same simulated world.
class RehearsedChildren final : public engine::ChildPrograms {
 public:
  RehearsedChildren(Stage& stage, const Rehearsal& what, const engine::RunHooks& hooks)
      : stage_(stage), what_(what), event_(hooks.event), print_(hooks.print) {}
  engine::RunHooks hooks(const std::string&) override {
    engine::RunHooks h;
    h.event = event_;
    h.print = print_;
    return h;
  }
  Result<std::unique_ptr<engine::Program>> load(engine::Run& child, const std::string& script) override {
    return host::load_program(*stage_.loop, rehearsal_host_options("", what_), stage_.interrupter, child, script);
  }

 private:
  Stage& stage_;
  const Rehearsal& what_;
  std::function<void(const Value&)> event_;
  std::function<void(std::string_view)> print_;
};

Result<> set_up(Stage& s, const Rehearsal& what, const provider::sim::Options& weather) {
  s.time.end_at(s.time.wall_us() + what.days_max * 86'400'000'000);
  RILLE_TRY(s.world, engine::Simulation::create(s.time, provider::sim::with_list_prices(weather), what.home));
  s.world->agents.learn(what.lessons);
  s.world->agents.end_unknown_calls(what.unknown_calls_end_at_once);
  RILLE_TRY(s.loop, Loop::create_virtual(s.time));
  RILLE_TRY(s.engine, engine::Engine::open_simulated(*s.loop, *s.world));
  engine::RunHooks hooks;
  const std::int64_t began_us = s.time.wall_us();
  if (what.event)
    hooks.event = [&what, &time = s.time, began_us](const Value& e) { what.event(time.wall_us() - began_us, e); };
  if (what.print) hooks.print = what.print;
  hooks.children = std::make_shared<RehearsedChildren>(s, what, hooks);
  engine::RunSpec spec;
  spec.script = what.script;
  spec.args = what.args;
  spec.id = "simulated-" + std::to_string(weather.seed);
  RILLE_TRY(s.run, run_blocking(*s.loop, s.engine->start(std::move(spec), std::move(hooks))));
  host::HostOptions options = rehearsal_host_options(fs::path(what.script).parent_path().string(), what);
  RILLE_TRY(s.host, host::LuaHost::create(*s.loop, std::move(options)));
  s.host->bind_run(*s.run);
  s.host->grant(what.grants);
  return {};
}

Error endless(const Rehearsal& what) {
  return make_error(
      ErrorKind::timeout, "the run is not over after " + std::to_string(what.days_max) + " days of simulated time",
      "the script waits for something that never happens in a simulation, such as a signal without a timeout");
}

}  // namespace

Outcome rehearse(const Rehearsal& what, const provider::sim::Options& weather, bool with_rented) {
  Outcome out;
  out.seed = weather.seed;
  Stage s;
  if (Result<> ready = set_up(s, what, weather); !ready) {
    out.result = ready.error();
    return out;
  }
  Result<FunctionRef> main = s.host->load_file(what.script);
  if (!main) {
    out.result = main.error();
    return out;
  }
  const std::int64_t began_us = s.time.wall_us();
  std::optional<Result<Value>> result;
  auto whole = [](Stage& stage, FunctionRef f, std::optional<Result<Value>>& into) -> Task<void> {
    Value none;
    into.emplace(co_await stage.run->execute(*stage.host, f, none));
  };
  s.loop->spawn(whole(s, *main, result));
  s.loop->run_until([&] { return result.has_value(); });
  out.result = result ? std::move(*result) : Result<Value>(endless(what));
  const provider::sim::Cloud& cloud = s.world->cloud;
  out.took_us = s.time.wall_us() - began_us;
  out.left_alive = cloud.alive();
  out.cost_micros = cloud.bill_micros();
  out.announced = cloud.escaped();
  out.preemptions = cloud.preempted() + out.announced;
  out.machines = static_cast<int>(cloud.boxes().size());
  for (const provider::sim::Box& box : cloud.boxes())
    if (!box.is_volume) out.types.insert(box.place.type->id);
  out.unknown_calls = s.world->agents.unknown_calls();
  out.lost_work_ms = s.world->agents.lost_work_ms();
  if (!with_rented) return out;
  auto leases = s.engine->leases().all(true);  // leases of the run and of its child runs
  for (lease::Lease& l : leases ? *leases : std::vector<lease::Lease>()) {
    Rented r;
    r.options = s.world->asked[l.id];
    r.lease = std::move(l);
    out.rented.push_back(std::move(r));
  }
  return out;
}

std::string shown_sum(Micros micros) {
  const Micros magnitude = micros < 0 ? -micros : micros;
  const Micros step = magnitude >= 1'000'000 ? 10'000 : magnitude >= 1'000 ? 100 : 1;
  const Micros rounded = (magnitude + step / 2) / step * step;
  return format_dollars(micros < 0 ? -rounded : rounded);
}

Result<Rehearsal> prepare_rehearsal(const App& app, const std::string& file, const std::vector<std::string>& words,
                                    const ScratchHome& home) {
  Rehearsal what;
  std::error_code ec;
  what.script = fs::absolute(file, ec).lexically_normal().string();
  if (!fs::is_regular_file(what.script, ec))
    return make_error(ErrorKind::invalid, fmt::format("there is no script '{}'", file), "check the path");
  RILLE_TRY(what.args, parse_script_arguments(words));
  RILLE_TRY(what.grants, grants_of(what.script, {}));
  what.home = home.path();
  what.lessons = lessons_of(app.home, what.script);
  return what;
}

std::shared_ptr<const engine::Lessons> lessons_of(const std::string& home, const std::string& script) {
  auto lessons = std::make_shared<engine::Lessons>();
  std::error_code ec;
  std::string path = home + "/journal.db";
  if (!fs::exists(path, ec)) return lessons;
  if (auto db = store::Db::open(path, true))
    if (auto learned = engine::learn(**db, script)) *lessons = std::move(*learned);
  return lessons;
}

ScratchHome::ScratchHome() {
  for (const char* base : {"/dev/shm", "/tmp"}) {
    std::string name = std::string(base) + "/rille-simulate-" + std::to_string(getpid()) + "-XXXXXX";
    if (mkdtemp(name.data())) {
      path_ = name;
      return;
    }
  }
}

ScratchHome::~ScratchHome() {
  std::error_code ec;
  if (!path_.empty()) fs::remove_all(path_, ec);
}

}  // namespace rille::cli
