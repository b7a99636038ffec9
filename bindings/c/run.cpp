// rille_run: one run of a script, started from the script's text or resumed from the journal.
#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bindings/c/bridge.hpp"
#include "bindings/c/internal.hpp"
#include "bindings/host/program.hpp"
#include "bindings/lua/open.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/run_state.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::capi {

namespace {

constexpr std::size_t source_bytes_max = 16 << 20;
constexpr std::int64_t as_granted = RILLE_AS_GRANTED;

Result<std::string> read_script(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::move(errno_error("open", path, errno)).with_hint("check the path of the script");
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

host::HostOptions host_options(const rille_run& r) {
  rille_runtime* rt = r.runtime;
  host::HostOptions o;
  o.rules = r.options.rules == RILLE_RULES_OPEN ? host::Rules::open : host::Rules::workflow;
  o.memory = r.memory;
  o.disk = r.disk;
  o.limits.slice_ms = r.options.slice_ms;
  o.limits.wall_ms = r.options.wall_ms;
  o.limits.cpu_ms = r.options.cpu_ms;
  o.limits.output_bytes = r.options.output_bytes;
  o.limits.fibers_max = r.options.fibers_max;
  o.grants = r.grants;
  o.under_limits = o.memory || o.disk || o.limits.any() || r.options.spend_micros >= 0 || r.options.leases_max >= 0;
  if (r.options.jit && !o.under_limits) o.jit = host::Jit::on_request;
  o.spent = r.spent;
  o.turn = rt->turn;
  o.allocator = rt->allocator;
  o.full_tracebacks = rt->full_tracebacks;
  o.script_directory = r.directory;
  o.on_interrupt = [rt] { rt->take_interrupt(); };
  o.open = lua::openers();
  return o;
}

Result<> make_host(rille_run& r) {
  RILLE_TRY(r.host, host::LuaHost::create(*r.runtime->loop, host_options(r)));
  RILLE_TRY(r.bridge, install_modules(*r.host, r.runtime));
  r.bridge->run = &r;
  return {};
}

Result<> compile(rille_run& r) {
  RILLE_TRY(r.main, r.host->load(r.name, r.source));
  return {};
}

void show(const rille_run& r, rille_text_function function, const Value& value) {
  std::string text = value.to_json();
  function(text.data(), text.size(), r.options.payload);
}

// Known to its parent's run while it is loaded.
class Child final : public engine::Program {
 public:
  Child(rille_run* parent, engine::Run& run, std::unique_ptr<engine::Program> program)
      : parent_(parent), run_(run), program_(std::move(program)) {
    parent_->children.push_back(&run_);
  }
  ~Child() override { std::erase(parent_->children, &run_); }
  Guest& guest() override { return program_->guest(); }
  FunctionRef main() override { return program_->main(); }

 private:
  rille_run* parent_;
  engine::Run& run_;
  std::unique_ptr<engine::Program> program_;
};

// Child runs started by the script: they report to the callbacks of the script's run.
class Children final : public engine::ChildPrograms {
 public:
  explicit Children(rille_run* r) : r_(r) {}
  engine::RunHooks hooks(const std::string&) override { return capi::hooks(r_); }
  Result<std::unique_ptr<engine::Program>> load(engine::Run& child, const std::string& script) override {
    host::HostOptions o = host_options(*r_);
    o.on_interrupt = host::interrupt_child(std::move(o.on_interrupt), *r_->run, child);
    RILLE_TRY(auto program, host::load_program(*r_->runtime->loop, std::move(o), *r_->runtime->interrupter, child,
                                               script, r_->money));
    return std::unique_ptr<engine::Program>(std::make_unique<Child>(r_, child, std::move(program)));
  }
  // Its limits do not count for another's child run, and its grants may not reach what that run has read.
  bool joins_runs_of_others() const override { return r_->grants.is_everything() && !host_options(*r_).under_limits; }

 private:
  rille_run* r_;
};

}  // namespace

engine::RunHooks hooks(rille_run* r) {
  engine::RunHooks h;
  h.children = std::make_shared<Children>(r);
  if (r->options.print)
    h.print = [r](std::string_view text) { r->options.print(text.data(), text.size(), r->options.payload); };
  if (r->options.progress) h.progress = [r](const Value& value) { show(*r, r->options.progress, value); };
  if (r->options.event) {
    h.event = [r](const Value& value) { show(*r, r->options.event, value); };
  } else if (r->runtime->log) {
    h.event = [r](const Value& e) {
      std::string what = e.text("event");
      r->runtime->say(what == "log" ? RILLE_INFO : RILLE_DEBUG,
                      fmt::format("run {}: {}", r->id, what == "log" ? e.text("message") : e.to_json()));
    };
  }
  return h;
}

namespace {

Async<std::unique_ptr<engine::Run>> begin(rille_run* r) {
  engine::Engine& engine = *r->runtime->engine;
  engine::RunHooks told = hooks(r);
  if (r->resumed) co_return co_await engine.resume(r->id, std::move(told));
  engine::RunSpec spec;
  spec.id = r->id;
  spec.script = r->script;
  spec.mode = r->options.rules == RILLE_RULES_OPEN ? engine::Mode::session : engine::Mode::durable;
  spec.args = r->args;
  co_return co_await engine.start(std::move(spec), std::move(told));
}

// Stores the script's text in the journal, or, for a resumed run, reads it back from there.
Result<> pin(rille_run& r) {
  auto fresh = [&]() -> Result<std::string> {
    if (!r.resumed) return r.source;
    return make_error(ErrorKind::state,
                      fmt::format("the journal does not hold the script '{}' of run {}", r.name, r.id),
                      "the run stopped before its first step: start a new run");
  };
  RILLE_TRY(r.source, r.run->pinned(r.name, fresh));
  return r.resumed ? compile(r) : success();
}

// The limit that the host program has set, else the one recorded when the run began. Without a record: no limit if
// everything or no provider is granted; else a resumed run gets its budget in the journal, and all others get 0.
Result<std::int64_t> spend_limit(const rille_run& r) {
  const std::int64_t set = r.options.spend_micros;
  if (r.resumed && set != as_granted) return set;
  std::int64_t limit = set;
  if (set == as_granted) limit = r.grants.is_everything() || !r.grants.rents() ? -1 : 0;
  if (r.resumed && limit == 0) {
    RILLE_TRY(const std::vector<lease::Money> budgets, r.runtime->engine->leases().money(r.id));
    limit = std::max<std::int64_t>(budgets.front().limit, 0);
  }
  return host::settle_spend(*r.run, limit);
}

// What the host program has left open is denied, unless everything is granted.
Result<engine::RunLimits> money_limits(const rille_run& r) {
  engine::RunLimits limits;
  limits.leases_of = r.id;
  limits.leases_max = r.options.leases_max;
  if (limits.leases_max == as_granted) limits.leases_max = r.grants.is_everything() ? -1 : 0;
  RILLE_TRY(limits.spend_micros, spend_limit(r));
  return limits;
}

// While the script computes, its host looks at the same limit.
void watch_wall(rille_run* r) {
  Loop& loop = *r->runtime->loop;
  const std::int64_t wall_ms = r->options.wall_ms;
  r->wall = std::make_unique<Timer>(loop, wall_ms, [r, wall_ms] { r->host->time_is_over(host::wall_error(wall_ms)); });
  r->cleanup = std::make_unique<Timer>(loop, wall_ms + host::cleanup_wait_ms(wall_ms), [r, wall_ms] {
    r->host->end_grace();
    for (engine::Run* child : r->children) child->stop_cleanup(host::wall_error(wall_ms));
    r->run->stop_cleanup(host::wall_error(wall_ms));
  });
}

Async<Value> perform(rille_run* r) {
  RILLE_CO_TRY(r->run, co_await begin(r));
  r->host->bind_run(*r->run);
  if (!r->resumed || !r->grants_given) { RILLE_CO_TRY(r->grants, host::settle_grants(*r->run, r->grants)); }
  r->host->grant(r->grants);
  RILLE_CO_TRY(r->money, money_limits(*r));
  RILLE_CO_CHECK(pin(*r));  // before the limits: the script is the host program's own
  r->run->limit(host::shared_limits(*r->host, r->money));
  if (r->cancel_reason) r->run->cancel(*r->cancel_reason);
  if (r->options.wall_ms > 0) watch_wall(r);
  r->runtime->interrupter->add(r->host.get());
  Value none;
  co_return co_await r->run->execute(*r->host, r->main, none);
}

Task<void> drive(rille_run* r) {
  Result<Value> outcome = co_await perform(r);
  r->finish(std::move(outcome));
}

Result<> check_options(const rille_run_options& o) {
  for (auto [name, value, least] : {std::tuple{"memory_bytes", o.memory_bytes, 0},
                                    {"slice_ms", o.slice_ms, 0},
                                    {"wall_ms", o.wall_ms, 0},
                                    {"cpu_ms", o.cpu_ms, 0},
                                    {"output_bytes", o.output_bytes, 0},
                                    {"fibers_max", o.fibers_max, 0},
                                    {"disk_bytes", o.disk_bytes, 0},
                                    {"spend_micros", o.spend_micros, as_granted},
                                    {"leases_max", o.leases_max, as_granted}})
    if (value < least)
      return make_error(ErrorKind::invalid, fmt::format("{} = {}: expected at least {}", name, value, least));
  if (o.jit != 0 && o.jit != 1) return make_error(ErrorKind::invalid, fmt::format("jit = {}: expected 0 or 1", o.jit));
  if (o.rules != RILLE_RULES_WORKFLOW && o.rules != RILLE_RULES_OPEN)
    return make_error(ErrorKind::invalid, fmt::format("rules = {}: expected RILLE_RULES_WORKFLOW or RILLE_RULES_OPEN",
                                                      static_cast<int>(o.rules)));
  return {};
}

// A host program that was built before there were grants has all.
Result<> read_grants(rille_run& r, const rille_run_options* given) {
  const bool older = given && given->struct_size < offsetof(rille_run_options, grants) + sizeof given->grants;
  r.grants_given = r.options.grants != nullptr;
  if (older) r.grants = host::Grants::everything();
  if (!r.grants_given) return {};
  RILLE_TRY(const Value value, Value::from_json(r.options.grants));
  RILLE_TRY(r.grants, host::Grants::parse(value));
  r.options.grants = nullptr;  // the caller's memory
  return {};
}

Result<std::shared_ptr<rille_run>> new_run(rille_runtime* rt, const rille_run_options* given) {
  RILLE_CHECK(check_call(rt));
  if (rt->closed) return make_error(ErrorKind::state, "this runtime has been shut down", "create another");
  auto r = std::make_shared<rille_run>();
  r->runtime = rt;
  RILLE_TRY(r->options, read_options(given, "rille_run_options", rille_run_options_init));
  RILLE_CHECK(check_options(r->options));
  RILLE_CHECK(read_grants(*r, given));
  if (r->options.memory_bytes > 0) r->memory = std::make_shared<MemoryUse>(r->options.memory_bytes);
  const bool in_memory = rt->engine && rt->engine->home() == engine::in_memory_home;
  if (r->options.disk_bytes > 0 || (r->memory && in_memory))
    r->disk = std::make_shared<DiskUse>(r->options.disk_bytes, in_memory ? r->memory : nullptr);
  if (r->options.module_folder) r->directory = r->options.module_folder;
  if (r->options.args_json) {
    RILLE_TRY(r->args, Value::from_json(r->options.args_json));
    if (!r->args.as_object() && !(r->args.as_array() && r->args.as_array()->empty()))
      return make_error(ErrorKind::invalid, "args_json is not an object", R"(write it as {"steps": 300})");
  }
  r->options.args_json = r->options.module_folder = nullptr;  // drop pointers to the caller's memory
  return r;
}

Result<> prepare(rille_run& r, std::string source) {
  if (source.size() > source_bytes_max)
    return make_error(ErrorKind::invalid, fmt::format("'{}' is larger than 16 MB, the limit for a script", r.script));
  r.source = std::move(source);
  r.name = std::filesystem::path(r.script).filename().string();
  r.id = new_run_id(r.runtime->loop->clock().wall_us());
  RILLE_CHECK(make_host(r));
  return compile(r);
}

}  // namespace

Result<std::shared_ptr<rille_run>> prepare_source(rille_runtime* rt, const char* name, std::string source,
                                                  const rille_run_options* options) {
  RILLE_TRY(auto r, new_run(rt, options));
  if (std::filesystem::path(name).filename().empty())
    return make_error(ErrorKind::invalid, fmt::format("'{}' is not a script name", name),
                      "name it like a file: \"app.lua\"");
  r->script = name;
  RILLE_CHECK(prepare(*r, std::move(source)));
  return r;
}

Result<std::shared_ptr<rille_run>> prepare_file(rille_runtime* rt, const char* path, const rille_run_options* options) {
  RILLE_TRY(auto r, new_run(rt, options));
  std::error_code ec;
  std::filesystem::path file = std::filesystem::absolute(path, ec).lexically_normal();
  r->script = file.string();
  if (r->directory.empty()) r->directory = file.parent_path().string();
  RILLE_TRY(std::string source, read_script(r->script));
  RILLE_CHECK(prepare(*r, std::move(source)));
  return r;
}

}  // namespace rille::capi

using namespace rille;
using namespace rille::capi;

rille_run::rille_run() = default;
rille_run::~rille_run() { close(); }

void rille_run::cancel(Error reason) {
  if (run) run->cancel(std::move(reason));
  else if (!cancel_reason) cancel_reason = std::move(reason);
}

void rille_run::stop(Error reason) {
  if (state == RILLE_RUN_NEW) {
    started = true;
    finish(std::move(reason));
  } else if (state == RILLE_RUN_RUNNING) {
    cancel(std::move(reason));
  }
}

bool rille_run::can_resume() const {
  return options.rules == RILLE_RULES_WORKFLOW && (run || resumed) && runtime->engine &&
         runtime->engine->home() != engine::in_memory_home;
}

void rille_run::finish(Result<Value> outcome) {
  wall.reset();
  cleanup.reset();
  if (outcome) {
    Result<std::string> text = counted_json(*outcome, memory, 1, result_held);
    if (text) result = std::move(*text);
    else outcome = std::move(text).error();
  }
  if (outcome) {
    state = RILLE_RUN_DONE;
  } else {
    result.clear();
    state = outcome.error().kind == ErrorKind::cancelled ? RILLE_RUN_CANCELLED : RILLE_RUN_FAILED;
    error = hold(std::move(outcome).error());
  }
  runtime->loop->post([self = shared_from_this()] { self->settle(); });
}

void rille_run::close() {
  wall.reset();
  cleanup.reset();
  if (host) runtime->interrupter->remove(host.get());
  if (bridge) bridge->close();
  host.reset();
  run.reset();
}

// A large Lua state is freed over several turns.
void rille_run::settle() {
  if (host && bridge) bridge->close();
  if (host && !host->close_some()) return runtime->loop->post([self = shared_from_this()] { self->settle(); });
  close();
  settled = true;
  if (auto tell = std::exchange(done, nullptr)) tell(this, done_payload);
  if (freed) runtime->forget(this);
}

void rille_run_options_init(rille_run_options* options, size_t struct_size) {
  rille_run_options defaults{};
  defaults.struct_size = std::min(struct_size, sizeof defaults);
  // Programs that were built before RILLE_AS_GRANTED keep what they had.
  const bool older = struct_size < offsetof(rille_run_options, jit) + sizeof defaults.jit;
  defaults.spend_micros = defaults.leases_max = older ? -1 : RILLE_AS_GRANTED;
  std::memcpy(options, &defaults, defaults.struct_size);
}

rille_error* rille_run_from_source(rille_runtime* rt, const char* name, const char* source, size_t length,
                                   const rille_run_options* options, rille_run** run) {
  if (run) *run = nullptr;
  return guarded([&]() -> Result<> {
    if (!name || !source || !run)
      return null_argument("rille_run_from_source", !name ? "name" : !source ? "source" : "run");
    RILLE_TRY(auto r, prepare_source(rt, name, std::string(source, length), options));
    rt->runs.push_back(r);
    *run = r.get();
    return {};
  });
}

rille_error* rille_run_from_file(rille_runtime* rt, const char* path, const rille_run_options* options,
                                 rille_run** run) {
  if (run) *run = nullptr;
  return guarded([&]() -> Result<> {
    if (!path || !run) return null_argument("rille_run_from_file", !path ? "path" : "run");
    RILLE_TRY(auto r, prepare_file(rt, path, options));
    rt->runs.push_back(r);
    *run = r.get();
    return {};
  });
}

rille_error* rille_run_resume(rille_runtime* rt, const char* id, const rille_run_options* options, rille_run** run) {
  if (run) *run = nullptr;
  return guarded([&]() -> Result<> {
    if (!id || !run) return null_argument("rille_run_resume", !id ? "id" : "run");
    RILLE_TRY(auto r, new_run(rt, options));
    RILLE_TRY(engine::RunRow row, rt->engine->run(id));
    if (row.mode != "durable")
      return make_error(
          ErrorKind::state,
          fmt::format("run {} was started with RILLE_RULES_OPEN, so it was not recorded and cannot be resumed", row.id),
          "start a new run");
    if (run_has_ended(row.state))
      return make_error(ErrorKind::state, fmt::format("run {} has ended: {}", row.id, row.state), "start a new run");
    RILLE_CHECK(rt->engine->has_modules_of(row));
    r->resumed = true;
    r->options.rules = RILLE_RULES_WORKFLOW;
    r->id = row.id;
    r->script = row.script;
    std::filesystem::path file(row.script);
    r->name = file.filename().string();
    if (r->directory.empty() && file.is_absolute()) r->directory = file.parent_path().string();
    RILLE_CHECK(make_host(*r));
    rt->runs.push_back(r);
    *run = r.get();
    return {};
  });
}

rille_error* rille_run_start(rille_run* run) {
  return guarded([&]() -> Result<> {
    if (!run) return null_argument("rille_run_start", "run");
    rille_runtime* rt = run->runtime;
    RILLE_CHECK(check_call(rt));
    if (run->state != RILLE_RUN_NEW)
      return make_error(ErrorKind::state, fmt::format("run {} has been started already", run->id), "prepare another");
    if (rt->closed) return make_error(ErrorKind::state, "this runtime has been shut down", "create another");
    if (rt->running() >= rt->runs_max)
      return make_error(ErrorKind::state, fmt::format("{} runs are active, which is the limit runs_max", rt->runs_max),
                        "wait for one, or raise runs_max");
    run->state = RILLE_RUN_RUNNING;
    run->started = true;
    rt->loop->post([r = run->shared_from_this()] {
      if (r->state == RILLE_RUN_RUNNING) r->runtime->loop->spawn(drive(r.get()));
    });
    return {};
  });
}

rille_error* rille_run_cancel(rille_run* run, const char* reason) {
  return guarded([&]() -> Result<> {
    if (!run) return null_argument("rille_run_cancel", "run");
    rille_runtime* rt = run->runtime;
    Error why = make_error(ErrorKind::cancelled, reason && *reason ? reason : "cancelled by the host program");
    if (rt->pid == getpid() && rt->owner.load() != std::this_thread::get_id()) {
      rt->loop->post_from_thread([r = run->shared_from_this(), why = std::move(why)] { r->stop(why); });
      return {};
    }
    RILLE_CHECK(check_call(rt));
    run->stop(std::move(why));
    return {};
  });
}

rille_error* rille_run_on_done(rille_run* run, void (*done)(rille_run* run, void* payload), void* payload) {
  return guarded([&]() -> Result<> {
    if (!run) return null_argument("rille_run_on_done", "run");
    RILLE_CHECK(check_call(run->runtime));
    run->done = done;
    run->done_payload = payload;
    if (run->settled)
      run->runtime->loop->post([r = run->shared_from_this()] {
        if (auto tell = std::exchange(r->done, nullptr); tell && !r->freed) tell(r.get(), r->done_payload);
      });
    return {};
  });
}

const char* rille_run_id(const rille_run* run) { return run ? run->id.c_str() : ""; }
rille_state rille_run_state(const rille_run* run) {
  if (!run) return RILLE_RUN_NEW;
  return run->settled || run->state == RILLE_RUN_NEW ? run->state : RILLE_RUN_RUNNING;
}

const char* rille_run_result(const rille_run* run, size_t* length) {
  bool there = run && rille_run_state(run) == RILLE_RUN_DONE;
  if (length) *length = there ? run->result.size() : 0;
  return there ? run->result.c_str() : nullptr;
}

const rille_error* rille_run_error(const rille_run* run) { return run && run->settled ? run->error.get() : nullptr; }
int64_t rille_run_memory_bytes(const rille_run* run) {
  return run && run->host ? static_cast<int64_t>(run->host->state().bytes_used()) : 0;
}

void rille_run_free(rille_run* run) {
  if (!run || left_to_owner(run->runtime, [run] { rille_run_free(run); })) return;
  run->freed = true;
  if (!run->started || run->settled) run->runtime->forget(run);
}
