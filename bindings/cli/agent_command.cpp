// `rille agent build|install|connect|keeper|daemon|worker`: the programs that Rille, not the user, starts on an
// instance. Users may call `rille agent notice`: any program on the instance that learns of a preemption reports it
// this way.
#include <fmt/format.h>
#include <unistd.h>

#include "bindings/cli/command.hpp"
#include "bindings/host/gpu_use.hpp"
#include "bindings/lua/worker.hpp"
#include "runtime/core/base/build_id.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/store/instance_dir.hpp"
#include "runtime/core/store/unpack.hpp"
#include "runtime/workflow/agent/daemon.hpp"

namespace rille::cli {

namespace {

// `in`: the time until the provider reclaims the machine, for example "2m".
Result<> give_notice(App& app, const std::string& directory, const std::string& in) {
  RILLE_TRY(std::int64_t ms, parse_duration_ms(in));
  RILLE_TRY(auto machine, store::read_machine(directory));
  if (!machine)
    return make_error(ErrorKind::invalid, fmt::format("there is no instance in '{}'", directory),
                      "run it on the rented machine; --dir is the folder of its Rille agent");
  return store::write_notice(directory, app.loop->clock().wall_us() + ms * 1000);
}

struct AgentOptions {
  std::string directory, call, in, line;

  explicit AgentOptions(const std::vector<std::string>& words) {
    for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
      if (words[i] == "--dir") directory = words[i + 1];
      else if (words[i] == "--call") call = words[i + 1];
      else if (words[i] == "--in") in = words[i + 1];
      else if (words[i] == "--line") line = words[i + 1];
    }
  }
};

Result<int> worker_part(App& app, const AgentOptions& given) {
  lua::WorkerOptions options;
  options.directory = given.directory;
  options.call_key = given.call;
  options.standard_line = given.line == "standard";
  options.full_tracebacks = app.trace;
  return run_blocking(*app.loop, lua::run_worker(*app.loop, options));
}

Result<int> daemon_part(App& app, const AgentOptions& given) {
  agent::DaemonOptions options;
  options.directory = given.directory;
  options.worker_argv = {app.self_exe, "agent", "worker"};
  options.build = build_id();
  store::load_archive_locale();
  return run_blocking(*app.loop, agent::run_daemon(*app.loop, options));
}

Result<int> keeper_part(App& app, const AgentOptions& given) {
  agent::KeeperOptions options;
  options.directory = given.directory;
  options.daemon_argv = {app.self_exe, "agent", "daemon"};
  return run_blocking(*app.loop, agent::run_keeper(*app.loop, options));
}

Result<int> connect_part(App& app, const AgentOptions& given) {
  agent::ConnectOptions options;
  options.directory = given.directory;
  options.keeper_argv = {app.self_exe, "agent", "keeper"};
  return run_blocking(*app.loop, agent::run_connect(*app.loop, options));
}

struct AgentCommand final : Command {
  std::vector<std::string> words;
  // agents start often, so their words skip the option parser
  std::vector<std::string>* all_words() override { return &words; }
  Exit run(App& app) override;
};

Exit AgentCommand::run(App& app) {
  const std::string what = words.empty() ? "" : words[0];
  const AgentOptions given(words);
  if (what == "build" && words.size() == 1) {
    app.terminal.out(std::string(build_id()) + "\n");
    return Exit::ok;
  }
  if (what == "install" && words.size() == 1) {
    app.terminal.out(host::install_identity() + "\n");
    return Exit::ok;
  }
  if (what == "notice" && !given.directory.empty() && !given.in.empty()) {
    Result<> told = give_notice(app, given.directory, given.in);
    return told ? Exit::ok : fail(app, told.error());
  }
  constexpr std::pair<std::string_view, Result<int> (*)(App&, const AgentOptions&)> parts[] = {
      {"worker", worker_part}, {"daemon", daemon_part}, {"keeper", keeper_part}, {"connect", connect_part}};
  for (const auto& [name, part] : parts) {
    if (what != name || given.directory.empty()) continue;
    Result<int> code = part(app, given);
    return code ? static_cast<Exit>(*code) : fail(app, code.error());
  }
  return fail_usage(app, make_error(ErrorKind::invalid,
                                    "rille agent is started by Rille itself, but for "
                                    "`rille agent notice --dir D --in 2m`",
                                    "see docs/manual/agents.md"));
}

const Registered<AgentCommand> agent_row({Group::machines, "agent", "what runs on an instance; started by Rille itself",
                                          Opens::nothing});

}  // namespace

}  // namespace rille::cli
