// rille_runtime: a loop, an engine and its runs. Functions that turn the loop, interrupt scripts and shut down.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "bindings/c/bridge.hpp"
#include "bindings/c/internal.hpp"
#include "bindings/c/script.hpp"
#include "bindings/host/gpu_use.hpp"
#include "runtime/core/base/places.hpp"

namespace rille::capi {

Result<> check_call(const rille_runtime* rt, Call kind) {
  if (!rt) return make_error(ErrorKind::invalid, "the runtime is NULL", "pass the runtime that rille_create made");
  if (rt->fork_mark.in_child())
    return make_error(ErrorKind::state,
                      fmt::format("this runtime belongs to process {}, of which this one is a fork", rt->pid),
                      "create a runtime after the fork, or fork before rille_create");
  if (rt->owner.load() != std::this_thread::get_id())
    return make_error(ErrorKind::state, "this runtime belongs to another thread",
                      "use rille_post, or rille_adopt to move it here");
  if (kind == Call::turns && (rt->turning || rt->script_calls > 0))
    return make_error(ErrorKind::state,
                      "the runtime runs a script or its event loop already: this function was called from a callback",
                      "return from the callback first");
  return {};
}

Error null_argument(const char* function, const char* what) {
  return make_error(ErrorKind::invalid, fmt::format("{}: {} is NULL", function, what));
}

namespace {

constexpr std::size_t scripts_loaded_max = 1000;
constexpr std::size_t child_runs_max = 256;  // limit of active child runs, over all runs of the runtime

Result<std::unique_ptr<rille_runtime>> create(const rille_options& options) {
  if (options.runs_max < 1 || options.runs_max > 10'000)
    return make_error(ErrorKind::invalid, fmt::format("runs_max = {}: expected 1 to 10000", options.runs_max));
  auto rt = std::make_unique<rille_runtime>();
  rt->log = options.log;
  rt->log_payload = options.log_payload;
  rt->full_tracebacks = options.full_tracebacks != 0;
  rt->runs_max = options.runs_max;
  rt->allocator = {options.allocate, options.allocate_payload};
  rt->interrupter = std::make_unique<host::Interrupter>(static_cast<std::size_t>(options.runs_max) + child_runs_max +
                                                        scripts_loaded_max);
  RILLE_TRY(rt->loop, Loop::create());
  rt->gate->loop = rt->loop.get();
  rt->turn = std::make_shared<host::Turn>(*rt->loop);
  rt->wake = new uv_async_t;
  rt->wake->data = rt.get();
  if (int rc = uv_async_init(rt->loop->uv(), rt->wake,
                             [](uv_async_t* a) { static_cast<rille_runtime*>(a->data)->take_interrupt(); });
      rc != 0) {
    delete std::exchange(rt->wake, nullptr);
    return make_error(ErrorKind::internal, fmt::format("cannot create a wake-up handle: {}", uv_strerror(rc)),
                      "check the limit of open files of this process (ulimit -n), then try again");
  }
  uv_unref(reinterpret_cast<uv_handle_t*>(rt->wake));
  engine::EngineOptions engine;
  engine.home = options.home && *options.home ? options.home : default_home();
  engine.self_exe = options.self_exe && *options.self_exe ? options.self_exe : find_program("rille");
  engine.providers_file = providers_file();
  engine.gpu_use = host::why_no_use_of_gpu;
  engine.install_identity = host::install_identity;
  if (engine.home.empty())
    return make_error(ErrorKind::config, "there is no folder for Rille's journal",
                      "set the option home, or the environment variable RILLE_HOME or HOME");
  RILLE_TRY(rt->engine, engine::Engine::open(*rt->loop, std::move(engine)));
  return rt;
}

// Turns the loop until `done` returns true or limit_ms have passed; limit_ms -1: no limit.
void turn_until(rille_runtime& rt, std::int64_t limit_ms, const std::function<bool()>& done) {
  Turning turning(rt, -1);
  bool late = false;
  std::optional<Timer> timer;
  if (limit_ms >= 0) timer.emplace(*rt.loop, limit_ms, [&late] { late = true; });
  rt.loop->run_until([&] { return late || done(); });
}

// The error that rille_shutdown returns; called before abandon().
Error not_ended(const rille_runtime& rt, std::int64_t deadline_ms) {
  std::string suspended, ended;
  for (const auto& run : rt.runs) {
    if (run->state != RILLE_RUN_RUNNING) continue;
    std::string& list = run->can_resume() ? suspended : ended;
    list += (list.empty() ? "" : ", ") + run->id;
  }
  std::string message = fmt::format("not everything had ended after {}", format_duration_ms(deadline_ms)), hint;
  if (!suspended.empty()) {
    message += ". These runs were suspended: " + suspended;
    hint = "continue them with rille_run_resume, or release their machines with `rille gc`";
  }
  if (!ended.empty()) message += ". These cannot be resumed and ended without the rest of their cleanup: " + ended;
  if (suspended.empty() && ended.empty()) message += ": some machines were still being released";
  if (hint.empty()) hint = "see with `rille leases` what is still rented; `rille gc` releases it";
  return make_error(ErrorKind::timeout, std::move(message), std::move(hint));
}

}  // namespace
}  // namespace rille::capi

using namespace rille;
using namespace rille::capi;

rille_runtime::~rille_runtime() {
  {
    std::lock_guard lock(gate->mutex);
    gate->loop = nullptr;
  }
  if (loop) abandon();
  runs.clear();
  scripts.clear();
  engine.reset();
  if (wake)
    uv_close(reinterpret_cast<uv_handle_t*>(wake), [](uv_handle_t* h) { delete reinterpret_cast<uv_async_t*>(h); });
  loop.reset();
  holdings->end();
}

// Runs on the runtime's thread: called from the loop, or from the debug hook of Lua code that was interrupted.
void rille_runtime::take_interrupt() {
  if (!interrupter->take()) return;
  auto all = runs;
  for (const auto& run : all)
    if (run->state == RILLE_RUN_RUNNING)
      run->cancel(make_error(ErrorKind::cancelled, "interrupted by the host program"));
  for (const auto& script : scripts)
    script->interrupt(make_error(ErrorKind::cancelled, "interrupted by the host program"));
}

int rille_runtime::running() const {
  return static_cast<int>(
      std::count_if(runs.begin(), runs.end(), [](const auto& r) { return r->started && !r->settled; }));
}

void rille_runtime::forget(rille_run* run) {
  std::erase_if(runs, [run](const auto& r) { return r.get() == run; });
}

void rille_runtime::abandon() {
  for (const auto& r : runs)
    if (r->state == RILLE_RUN_RUNNING && r->run && engine) (void)engine->suspend(*r->run);
  loop->abandon_tasks();
  for (const auto& r : runs) {
    if (r->state == RILLE_RUN_RUNNING && !r->can_resume())
      r->error = hold(make_error(ErrorKind::cancelled, "the runtime ended before the run had"));
    if (r->state == RILLE_RUN_RUNNING) r->state = r->can_resume() ? RILLE_RUN_SUSPENDED : RILLE_RUN_CANCELLED;
    if (r->started) r->settled = true;
    r->close();
  }
  for (const auto& s : std::vector(scripts)) s->close();
  pending = 0;
}

void rille_options_init(rille_options* options, size_t struct_size) {
  rille_options defaults{};
  defaults.struct_size = std::min(struct_size, sizeof defaults);
  defaults.runs_max = 64;
  std::memcpy(options, &defaults, defaults.struct_size);
}

rille_error* rille_create(const rille_options* options, rille_runtime** runtime) {
  if (runtime) *runtime = nullptr;
  return guarded([&]() -> Result<> {
    if (!runtime) return null_argument("rille_create", "runtime");
    RILLE_TRY(rille_options known, read_options(options, "rille_options", rille_options_init));
    RILLE_TRY(auto made, create(known));
    *runtime = made.release();
    return {};
  });
}

rille_error* rille_adopt(rille_runtime* rt) {
  return guarded([&]() -> Result<> {
    if (!rt) return null_argument("rille_adopt", "runtime");
    if (rt->pid != getpid()) return check_call(rt);
    rt->owner.store(std::this_thread::get_id());
    return {};
  });
}

rille_error* rille_shutdown(rille_runtime* rt, int64_t deadline_ms) {
  return guarded([&]() -> Result<> {
    RILLE_CHECK(check_call(rt, Call::turns));
    rt->closed = true;
    auto all = rt->runs;
    for (const auto& run : all)
      if (run->state == RILLE_RUN_RUNNING) run->cancel(make_error(ErrorKind::cancelled, "the host program shuts down"));
    for (const auto& script : rt->scripts)
      script->interrupt(make_error(ErrorKind::cancelled, "the host program shuts down"));
    turn_until(*rt, std::max<std::int64_t>(0, deadline_ms), [rt] { return rt->running() == 0 && rt->pending == 0; });
    if (rt->running() == 0 && rt->pending == 0) return rt->engine->journal().flush();
    Error error = not_ended(*rt, deadline_ms);
    rt->abandon();
    return error;
  });
}

rille_error* rille_destroy(rille_runtime* rt) {
  return guarded([&]() -> Result<> {
    if (!rt) return {};
    RILLE_CHECK(check_call(rt, Call::turns));
    delete rt;
    return {};
  });
}

int rille_poll_fd(const rille_runtime* rt) { return rt ? rt->loop->poll_fd() : -1; }

int rille_poll_timeout_ms(rille_runtime* rt) { return check_call(rt) ? rt->loop->poll_timeout_ms() : 0; }

rille_error* rille_turn(rille_runtime* rt, int budget_ms, int* busy) {
  if (busy) *busy = 0;
  return guarded([&]() -> Result<> {
    RILLE_CHECK(check_call(rt, Call::turns));
    budget_ms = std::max(0, budget_ms);
    Turning turning(*rt, budget_ms);
    rt->loop->turn(budget_ms);
    if (busy) *busy = rt->running() > 0 || rt->pending > 0;
    return {};
  });
}

rille_error* rille_post(rille_runtime* rt, rille_post_function function, void* payload) {
  return guarded([&]() -> Result<> {
    if (!rt || !function) return null_argument("rille_post", rt ? "function" : "runtime");
    if (rt->pid != getpid()) return check_call(rt);
    rt->loop->post_from_thread([function, payload] { function(payload); });
    return {};
  });
}

void rille_interrupt(rille_runtime* rt) {
  if (!rt || rt->pid != getpid()) return;
  rt->interrupter->arm();
  uv_async_send(rt->wake);
}

rille_error* rille_run_wait(rille_run* run, int64_t timeout_ms) {
  return guarded([&]() -> Result<> {
    if (!run) return null_argument("rille_run_wait", "run");
    RILLE_CHECK(check_call(run->runtime, Call::turns));
    if (run->state == RILLE_RUN_NEW)
      return make_error(ErrorKind::state, "the run has not been started", "call rille_run_start first");
    auto keep = run->shared_from_this();
    auto over = [&keep] { return keep->settled; };
    turn_until(*keep->runtime, timeout_ms, over);
    if (over()) return {};
    return make_error(ErrorKind::timeout,
                      fmt::format("run {} has not ended within {}", keep->id, format_duration_ms(timeout_ms)),
                      "wait again, or cancel it")
        .with_resource(keep->id);
  });
}
