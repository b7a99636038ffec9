// `rille agent build|install|connect|keeper|daemon|worker`: what runs on an instance. Started by Rille, not by people;
// but for `rille agent notice`, for whatever there knows that the machine will be taken away.
#include <fmt/format.h>
#include <unistd.h>

#include "bindings/cli/app.hpp"
#include "bindings/host/gpu_use.hpp"
#include "bindings/lua/worker.hpp"
#include "runtime/core/base/build_id.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/store/instance_dir.hpp"
#include "runtime/workflow/agent/daemon.hpp"

namespace rille::cli {

namespace {

// --in 2m: when the machine will be taken away.
Result<> give_notice(App& app, const std::string& directory, const std::string& in) {
  RILLE_TRY(std::int64_t ms, parse_duration_ms(in));
  RILLE_TRY(auto machine, store::read_machine(directory));
  if (!machine) return make_error(ErrorKind::invalid, fmt::format("there is no instance in '{}'", directory));
  return store::write_notice(directory, app.loop->clock().wall_us() + ms * 1000);
}

}  // namespace

int agent_command(App& app, const std::vector<std::string>& words) {
  std::string what = words.empty() ? "" : words[0], directory, call, in, line;
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    if (words[i] == "--dir") directory = words[i + 1];
    else if (words[i] == "--call") call = words[i + 1];
    else if (words[i] == "--in") in = words[i + 1];
    else if (words[i] == "--line") line = words[i + 1];
  }
  if (what == "build" && words.size() == 1) {
    app.terminal.out(std::string(build_id()) + "\n");
    return 0;
  }
  if (what == "install" && words.size() == 1) {
    app.terminal.out(host::install_identity() + "\n");
    return 0;
  }
  if (what == "notice" && !directory.empty() && !in.empty()) {
    Result<> given = give_notice(app, directory, in);
    return given ? 0 : fail(app, given.error());
  }
  if (directory.empty() || (what != "keeper" && what != "daemon" && what != "connect" && what != "worker"))
    return fail(app, make_error(ErrorKind::invalid,
                                "rille agent is started by Rille itself, but for "
                                "`rille agent notice --dir D --in 2m`",
                                "see docs/manual/agents.md")),
           2;
  if (what == "worker") {
    lua::WorkerOptions options;
    options.directory = directory;
    options.call_key = call;
    options.standard_line = line == "standard";
    options.full_tracebacks = app.trace;
    Result<int> code = run_blocking(*app.loop, lua::run_worker(*app.loop, options));
    return code ? *code : fail(app, code.error());
  }
  if (what == "daemon") {
    agent::DaemonOptions options;
    options.directory = directory;
    options.worker_argv = {app.self_exe, "agent", "worker"};
    options.build = build_id();
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
