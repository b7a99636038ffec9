// `rille agent connect|keeper|daemon|worker`: what runs on an instance. Started by Rille, not by people.
#include <fmt/format.h>
#include <unistd.h>

#include "bindings/cli/app.hpp"
#include "bindings/lua/worker.hpp"
#include "runtime/agent/daemon.hpp"

namespace rille::cli {

int agent_command(App& app, const std::vector<std::string>& words) {
  std::string what = words.empty() ? "" : words[0], directory, call;
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    if (words[i] == "--dir") directory = words[i + 1];
    else if (words[i] == "--call") call = words[i + 1];
  }
  if (directory.empty() || (what != "keeper" && what != "daemon" && what != "connect" && what != "worker"))
    return fail(app, make_error(ErrorKind::invalid, "rille agent is started by Rille itself",
                                "see docs/manual/agents.md")),
           2;
  if (what == "worker") {
    lua::WorkerOptions options;
    options.directory = directory;
    options.call_key = call;
    options.full_tracebacks = app.trace;
    Result<int> code = run_blocking(*app.loop, lua::run_worker(*app.loop, options));
    return code ? *code : fail(app, code.error());
  }
  if (what == "daemon") {
    agent::DaemonOptions options;
    options.directory = directory;
    options.worker_argv = {app.self_exe, "agent", "worker"};
    options.build = RILLE_VERSION;
    Result<int> code = run_blocking(*app.loop, agent::run_daemon(*app.loop, options));
    return code ? *code : fail(app, code.error());
  }
  if (what == "keeper") {
    agent::KeeperOptions options;
    options.directory = directory;
    options.daemon_argv = {app.self_exe, "agent", "daemon"};
    Result<int> code = run_blocking(*app.loop, agent::run_keeper(*app.loop, options));
    return code ? *code : fail(app, code.error());
  }
  agent::ConnectOptions options;
  options.directory = directory;
  options.keeper_argv = {app.self_exe, "agent", "keeper"};
  Result<int> code = run_blocking(*app.loop, agent::run_connect(*app.loop, options));
  return code ? *code : fail(app, code.error());
}

}  // namespace rille::cli
