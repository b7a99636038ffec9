// What every command of `rille` needs: the loop, the engine of this RILLE_HOME, the terminal. Commands return exit
// codes:
// 0 done, 1 script error, 2 usage, 3 cleanup pending, 124 timeout, 130 interrupted.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/terminal.hpp"
#include "runtime/workflow/engine/engine.hpp"

namespace rille::cli {

struct App {
  // Where the command was started; "/" when that folder is gone.
  static std::string folder();
  std::unique_ptr<Loop> loop;
  std::unique_ptr<engine::Engine> engine;  // opened by open_engine
  Terminal terminal;
  std::string home;  // RILLE_HOME
  std::string self_exe;
  std::vector<std::string> commands;  // the words of `rille --help`
  bool json = false;
  bool trace = false;  // RILLE_TRACE=1
};

Result<> open_engine(App& app);
int exit_code(const Error& error);
// Prints the error and gives its exit code.
int fail(App& app, const Error& error);

// stop_command.cpp: a run as people name it. "last" is the newest that has not ended, if there is one, and that is
// `alive` (a process runs it), or is not.
Result<engine::RunRow> open_run(const App& app, const std::string& id, bool alive);
int cancel_command(App& app, const std::string& run);
int suspend_command(App& app, const std::string& run);

// run_command.cpp
struct RunArguments {
  std::string file;                 // "" for -e
  std::optional<std::string> code;  // of -e
  std::vector<std::string> script_arguments;
  std::string tag;        // whose budget it shares
  std::string deadline;   // "2h"; "" = none
  std::string resume;     // a run id; with code: a session that the code goes on with, and ends
  std::string with;       // the file that `resume` goes on with instead of the pinned script
  bool rerent = false;    // of such a one: machines of its own for leases that were open there
  std::string fork_from;  // a key: not that run goes on, but a new one that begins with its record
  bool retry_failed = false;
  bool cancel = false;  // goes back to where it stood, and cleans up
};
int run_command(App& app, const RunArguments& arguments);
// "--steps 500 --flag --x=1" -> {steps="500", flag=true, x="1"}. invalid: a word that is no option.
Result<Value> parse_script_arguments(const std::vector<std::string>& words);

// rewrite_commands.cpp
int invalidate_command(App& app, const std::string& run, const std::string& key);
// Forks, or forgets a failure, as the arguments say: gives the id of the run to resume.
Result<std::string> go_back(App& app, const RunArguments& arguments);

// query_commands.cpp
int show_command(App& app, const std::string& run);
int logs_command(App& app, const std::string& run, bool follow);
int release_command(App& app, const std::string& lease_or_run);
int abandon_command(App& app, const std::string& run);  // what the second Ctrl-C leaves to a new process
// now: a run whose leases end at once; unknown: a machine in no journal that ends; "" = none
int gc_command(App& app, const std::string& now, const std::string& unknown);
int signal_command(App& app, const std::string& run, const std::string& name, const std::string& value);

// leases_command.cpp: of the journal, also released ones (all); or as the providers show them
int leases_command(App& app, bool all, bool providers);

// quotas_command.cpp: of all providers, or of these
int quotas_command(App& app, const std::vector<std::string>& providers, const std::string& region);

// cost_commands.cpp
int cost_command(App& app, const std::string& run, const std::string& by, bool reconcile);  // by: "", run tag month ..
std::string cost_table(const std::vector<lease::Lease>& leases, std::int64_t now_us);
struct BudgetArguments {
  std::string month, alert_url;   // month: "200", or "none"; "" leaves it as it is
  std::vector<std::string> tags;  // "eval=50"
  std::int64_t alert_percent = 80;
};
int budget_command(App& app);
int budget_set_command(App& app, const BudgetArguments& arguments);

// agent_command.cpp
int agent_command(App& app, const std::vector<std::string>& words);
// doctor.cpp
int audit_command(App& app, const std::string& run, const std::string& kept);
int doctor_command(App& app);
// doctor_provider.cpp. `name`: or "all", those of the settings.
int doctor_provider_command(App& app, const std::string& name, bool with_policy);
// doctor_live.cpp
struct LiveArguments {
  std::string provider, gpu = "any";
  double max_cost = 0.5, price = -1;  // dollars, and dollars per hour; -1: as the provider says
  bool spot = false;
};
int doctor_live_command(App& app, const LiveArguments& arguments);
// top_command.cpp
struct TopArguments {
  std::string interval = "1s";
  int count = 0;  // readings; 0: until it is ended
};
int top_command(App& app, const TopArguments& arguments);
// repl.cpp
int repl_command(App& app, const std::string& resume);  // "" = a new session

}  // namespace rille::cli
