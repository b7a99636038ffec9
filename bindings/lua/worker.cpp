#include "bindings/lua/worker.hpp"

#include <cstdio>

#include "bindings/host/host.hpp"
#include "bindings/host/open.hpp"
#include "bindings/lua/open.hpp"
#include "runtime/core/store/objects/url.hpp"
#include "runtime/workflow/agent/worker_channel.hpp"

namespace rille::lua {

namespace {

engine::RunHooks hooks_of(agent::WorkerChannel& channel) {
  engine::RunHooks hooks;
  hooks.print = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  hooks.progress = [&channel](const Value& value) { channel.progress(value); };
  hooks.metric = [&channel](std::string_view line) { channel.metric(line); };
  hooks.event = [&channel](const Value& event) {
    if (event.text("event") == "checkpoint") channel.checkpoint(event);
  };
  return hooks;
}

// Tells rille.train that this machine sends the call's checkpoints to a store.
int open_sends_checkpoints(lua_State* L) {
  push_rille_core(L);
  lua_getfield(L, -1, "loaded");
  lua_getfield(L, -1, "rille.native");
  set_field(L, "sends_checkpoints", true);
  lua_settop(L, 1);
  return 0;
}

Async<Value> run_call(Loop& loop, agent::WorkerChannel& channel, const WorkerOptions& options) {
  const Value& spec = channel.spec();
  const Value& payload = spec["payload"];
  if (spec.text("kind") != "lua")
    co_return make_error(ErrorKind::invalid,
                         "a worker process runs calls of kind 'lua', not '" + spec.text("kind") + "'",
                         "install one version of Rille on this machine and on the rented one");
  std::unique_ptr<engine::Run> run =
      engine::make_ephemeral_run(loop, channel.call_key(), ".", payload["args"], hooks_of(channel));
  host::HostOptions host_options;
  host_options.rules = host::Rules::open;
  host_options.jit = host::Jit::always;
  host_options.memory_limit_bytes = host::default_memory_limit();
  host_options.full_tracebacks = options.full_tracebacks;
  host_options.script_directory = ".";
  host_options.last_checkpoint = channel.last_checkpoint();
  host_options.preempting = [&channel] {
    agent::WorkerChannel::Preempting p = channel.preempting();
    return std::pair(p.deadline_wall_us, p.leave);
  };
  host_options.open = openers();
  host_options.open.push_back(open_as_global);  // as in the REPL, where such functions are written
  if (objects::is_object_url(payload.text("checkpoint"))) host_options.open.push_back(open_sends_checkpoints);
  RILLE_CO_TRY(std::unique_ptr<host::LuaHost> host, host::LuaHost::create(loop, std::move(host_options)));
  host->bind_run(*run);
  RILLE_CO_TRY(FunctionRef main, host->load_shipped(payload));

  // Cancelled by the runner, or by the agent's timeout.
  auto cancelled = channel.cancelled().on_cancel([&run](const Error& why) { run->cancel(why); });
  Result<Value> result = co_await run->execute(*host, main, payload["args"]);
  host.reset();  // the host refers to the run, so it goes first
  if (!result && !result.error().traceback.empty())
    result.error().traceback += "\n" + host::call_line(payload.text("name"));
  co_return result;
}

}  // namespace

Async<int> run_worker(Loop& loop, WorkerOptions options) {
  using agent::WorkerChannel;
  Result<std::unique_ptr<WorkerChannel>> opened =
      options.standard_line ? WorkerChannel::open_standard(loop, options.directory, options.call_key)
                            : WorkerChannel::open(loop, options.directory, options.call_key);
  RILLE_CO_TRY(std::unique_ptr<WorkerChannel> channel, std::move(opened));
  Result<Value> result = co_await run_call(loop, *channel, options);
  RILLE_CO_CHECK(co_await channel->finish(std::move(result)));
  co_return 0;
}

}  // namespace rille::lua
