// Child runs, which a script starts. Each is a separate run, is found by its id after a crash, and is ended when the
// parent's fiber that waits for it is cancelled.
#include <fmt/format.h>

#include <cctype>
#include <filesystem>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/run_state.hpp"
#include "runtime/workflow/engine/engine.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

namespace {

constexpr std::int64_t look_again_ms = 500;

// The id of a child run: run R's child with the script eval.lua -> "R.eval-3f9c20".
std::string child_id(const std::string& parent, const std::string& script, const std::string& key) {
  std::string stem;
  for (char c : std::filesystem::path(script).stem().string())
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_') stem += c;
  return parent + "." + stem.substr(0, 24) + "-" + derive_hex({"child", parent, key}, 6);
}

Result<Value> outcome_of(RunRow row) {
  if (row.error) return std::move(*row.error);
  return std::move(row.result);
}

Error failed_child(const std::string& id, const std::string& script, Error why) {
  Error e = why;
  e.message =
      fmt::format("run {} of '{}' failed: {}", id, std::filesystem::path(script).filename().string(), why.message);
  e.resource = id;
  e.traceback.clear();
  e.cause = std::make_shared<const Error>(std::move(why));
  return e;
}

}  // namespace

Async<Value> RunImpl::child(FiberId id, ChildSpec spec, std::string source) {
  std::string name = std::filesystem::path(spec.script).filename().string();
  std::filesystem::path script(spec.script);
  std::error_code ec;
  if (script.is_relative()) {
    std::filesystem::path folder = std::filesystem::path(config_.script).parent_path();
    script = folder.empty() ? std::filesystem::absolute(script, ec) : folder / script;
  }
  if (!spec.id.empty()) RILLE_CO_CHECK(check_run_id(spec.id));
  Value what;
  what.set("script", spec.script).set("args", spec.args).set("id", spec.id);
  spec.script = script.lexically_normal().string();
  if (spec.may_read) RILLE_CO_CHECK(spec.may_read(spec.script));
  FiberRecord& f = fiber(id);
  const std::string child = spec.id.empty() ? child_id(config_.id, spec.script, next_key(f, name)) : spec.id;
  Operation op{"run", std::move(name), std::move(what), std::move(source)};
  Result<Admitted> admitted = co_await admit(id, std::move(op));
  if (!admitted) {
    Error why = admitted.error();
    // A fiber cancelled while it waits for the end of the replay may have begun this child in an earlier process.
    if (!cancelled(id) || divergence_ || !config_.engine || !config_.hooks.children) co_return why;
    RILLE_CO_TRY(const bool live, co_await release_gate(f));
    if (!live || divergence_) co_return why;
    Result<> ended = co_await config_.engine->end_child(child, config_.hooks.children, why);
    if (!ended) event("warning", Value().set("what", "the end of run " + child).set("message", ended.error().message));
    co_return why;
  }
  Admitted slot = std::move(*admitted);
  if (slot.recorded) co_return std::move(*slot.recorded);
  if (!config_.engine || !config_.hooks.children)
    co_return make_error(ErrorKind::state, "rille.run: this code cannot start other runs",
                         "start them in the workflow: not inside box:call, nor in a script that stays loaded");
  record_start(slot);
  count_row(spec.script.size() + spec.args.to_json().size());
  spec.id = child;
  std::string path = spec.script;
  Engine::Paused paused;
  if (config_.mode == Mode::durable)
    paused = [this, f = slot.fiber](Error why) {
      pause(std::move(why));
      return hold(*f);
    };
  Result<Value> outcome = co_await config_.engine->run_child(std::move(spec), config_.id, config_.hooks.children,
                                                             token(*slot.fiber), std::move(paused));
  if (!outcome) {
    if (const Error* why = cancelled(id)) co_return *why;
    outcome = failed_child(child, path, std::move(outcome).error());
  }
  co_return co_await complete(std::move(slot), std::move(outcome));
}

Async<Value> Engine::run_child(ChildSpec spec, std::string parent, std::shared_ptr<ChildPrograms> programs,
                               CancelToken token, Paused paused) {
  while (true) {
    if (token.cancelled()) co_return token.reason();
    RILLE_CO_TRY(std::optional<RunRow> row, exactly(spec.id));
    if (row && row->parent != parent && !programs->joins_runs_of_others())
      co_return make_error(ErrorKind::state, fmt::format("run {} exists, and this run has not started it", spec.id),
                           "choose another id");
    if (row && row->state == "removed") co_return refuse_ended(*row).error();
    if (row && (row->script != spec.script || row->args.to_json() != spec.args.to_json())) {
      Error e =
          make_error(ErrorKind::state, fmt::format("run {} exists, with another script or other arguments", spec.id),
                     fmt::format("see it with `rille show {}`; choose another id", spec.id));
      co_return e;
    }
    if (row && !refuse_ended(*row)) co_return outcome_of(std::move(*row));
    RunHooks hooks = programs->hooks(spec.id);
    Result<std::unique_ptr<Run>> begun = make_error(ErrorKind::internal, "");
    if (row) {
      begun = co_await resume(spec.id, std::move(hooks));
    } else {
      RunSpec fresh;
      fresh.script = spec.script;
      fresh.args = spec.args;
      fresh.id = spec.id;
      fresh.parent = parent;
      begun = co_await start(std::move(fresh), std::move(hooks));
    }
    if (begun) co_return co_await execute_child(std::move(*begun), spec.script, programs, token, std::move(paused));
    if (!alive(spec.id)) co_return begun.error();
    RILLE_CO_CHECK(co_await sleep_for(loop_, look_again_ms, token));  // another fiber or process runs it
  }
}

namespace {

// Cancels a child after it has begun to run. A run that is cancelled before it begins would do no cleanup.
Task<void> cancel_soon(Loop& loop, std::shared_ptr<CancelSource> source, Error why) {
  (void)co_await sleep_for(loop, 0);
  source->cancel(std::move(why));
}

}  // namespace

Async<> Engine::end_child(std::string id, std::shared_ptr<ChildPrograms> programs, Error why) {
  RILLE_CO_TRY(std::optional<RunRow> row, exactly(id));
  if (!row || !refuse_ended(*row) || alive(id)) co_return success();
  RILLE_CO_TRY(std::unique_ptr<Run> run, co_await resume(id, programs->hooks(id)));
  const auto source = std::make_shared<CancelSource>();
  loop_.spawn(cancel_soon(loop_, source, std::move(why)));
  (void)co_await execute_child(std::move(run), row->script, programs, source->token(), nullptr);
  co_return success();
}

Async<Value> Engine::execute_child(std::unique_ptr<Run> run, std::string script,
                                   std::shared_ptr<ChildPrograms> programs, CancelToken token, Paused paused) {
  Result<std::unique_ptr<Program>> program = programs->load(*run, script);
  if (!program) {
    Error e = std::move(program).error();
    RILLE_CO_CHECK(co_await fail(run->id(), e));
    co_return e;
  }
  auto registration = token.on_cancel([r = run.get()](const Error& why) { r->cancel(why); });
  Value none;
  Result<Value> result = co_await run->execute((*program)->guest(), (*program)->main(), none);
  // A paused child's fibers stay suspended until this process ends.
  if (!result && result.error().code == "run_paused" && paused) {
    RILLE_CO_TRY(const std::optional<RunRow> row, exactly(run->id()));
    // A script can make up the code, but its run has ended then. A paused run's state may not have been written.
    if (row && !run_has_ended(row->state)) RILLE_CO_CHECK(co_await paused(result.error()));
  }
  co_return result;
}

}  // namespace rille::engine
