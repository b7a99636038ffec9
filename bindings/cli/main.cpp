// `rille`: reads the command line and calls the command. See `rille --help`.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "bindings/cli/app.hpp"
#include "bindings/cli/offers.hpp"
#include "bindings/cli/runs.hpp"
#include "bindings/cli/simulate.hpp"
#include "bindings/cli/usage.hpp"
#include "bindings/cli/watch.hpp"
#include "runtime/compute/device/lane_busy.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/loop/core_limit.hpp"
#include "runtime/core/store/sqlite_memory.hpp"

namespace rille::cli {

namespace {

std::string self_path() {
  char path[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : "rille";
}

// What follows FILE belongs to the script; CLI11 sees the words before it only.
struct Words {
  std::vector<std::string> ours, script;
};

// `rille simulate FILE ..`: its own options may stand anywhere before a `--`; what else follows is the script's.
Words split_rehearsal(int argc, char** argv, int i) {
  static const std::vector<std::string> with_value = {"--runs", "-n", "--seed", "--deadline", "--weather"};
  Words words;
  bool file = false;
  words.ours.emplace_back(argv[i++]);
  for (; i < argc; ++i) {
    std::string w = argv[i];
    if (w == "--") break;
    bool ours = std::find(with_value.begin(), with_value.end(), w) != with_value.end();
    if (ours || w == "--json" || w == "--help" || w == "-h" || (!file && !w.starts_with("--"))) {
      file = file || !w.starts_with("-");
      words.ours.push_back(w);
      if (ours && i + 1 < argc) words.ours.emplace_back(argv[++i]);
    } else {
      words.script.push_back(w);
      if (w.starts_with("--") && w.find('=') == std::string::npos && i + 1 < argc &&
          !std::string_view(argv[i + 1]).starts_with("--"))
        words.script.emplace_back(argv[++i]);
    }
  }
  for (++i; i < argc; ++i) words.script.emplace_back(argv[i]);
  return words;
}

// `rille schedule add NAME WHEN FILE ..`: what follows FILE is the script's.
Words split_schedule(int argc, char** argv, int i) {
  Words words;
  for (int named = 0; i < argc && named < 5; ++i) {  // schedule, add, and these three
    std::string w = argv[i];
    words.ours.push_back(w);
    bool with_value = w == "--missed" || w == "--overlap" || w == "--tag";
    if (with_value && i + 1 < argc) words.ours.emplace_back(argv[++i]);
    named += !w.starts_with("-");
  }
  for (; i < argc; ++i) words.script.emplace_back(argv[i]);
  return words;
}

Words split_words(int argc, char** argv, const CLI::App& cli) {
  Words words;
  int i = 1;
  auto is_command = [&](const std::string& w) {
    for (const CLI::App* sub : cli.get_subcommands([](const CLI::App*) { return true; }))
      if (sub->check_name(w)) return true;
    return false;
  };
  while (i < argc && std::string_view(argv[i]).starts_with("-") && std::string_view(argv[i]) != "-") {
    words.ours.emplace_back(argv[i]);
    if (words.ours.back() == "-e" && i + 1 < argc) words.ours.emplace_back(argv[++i]);
    ++i;
  }
  if (i >= argc) return words;
  std::string first = argv[i];
  bool rehearses = first == "simulate" || first == "plan";
  if (rehearses || (first == "schedule" && i + 1 < argc && std::string_view(argv[i + 1]) == "add")) {
    Words of = rehearses ? split_rehearsal(argc, argv, i) : split_schedule(argc, argv, i);
    words.ours.insert(words.ours.end(), of.ours.begin(), of.ours.end());
    words.script = std::move(of.script);
    return words;
  }
  bool runs_file = first == "run" || !is_command(first);
  if (!runs_file) {
    for (; i < argc; ++i) words.ours.emplace_back(argv[i]);
    return words;
  }
  words.ours.emplace_back("run");
  if (first == "run") ++i;
  for (; i < argc && std::string_view(argv[i]).starts_with("--"); ++i) {
    words.ours.emplace_back(argv[i]);
    if (words.ours.back() == "--tag" && i + 1 < argc) words.ours.emplace_back(argv[++i]);
    if (words.ours.back() == "--deadline" && i + 1 < argc) words.ours.emplace_back(argv[++i]);
  }
  if (i < argc) words.ours.emplace_back(argv[i++]);
  for (; i < argc; ++i) words.script.emplace_back(argv[i]);
  return words;
}

// With 0, 1 or 2 closed, the next file that is opened would be taken for a stream.
void open_missing_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) < 0) _exit(1);
}

}  // namespace

std::string App::folder() {
  std::error_code gone;
  std::filesystem::path here = std::filesystem::current_path(gone);
  return gone ? "/" : here.string();
}

int run_main(App& app, int argc, char** argv) {
  app.home = default_home();
  app.self_exe = self_path();
  const char* trace = std::getenv("RILLE_TRACE");
  app.trace = trace && std::string_view(trace) == "1";
  Result<std::unique_ptr<Loop>> loop = Loop::create();
  if (!loop) return fail(app, loop.error());
  app.loop = std::move(*loop);

  // Agents have words of their own, and are started often: they skip the parser.
  if (argc > 1 && std::string_view(argv[1]) == "agent") return agent_command(app, {argv + 2, argv + argc});

  CLI::App cli("Rille: rent, stage, train, checkpoint and release from one Lua script", "rille");
  cli.set_version_flag("--version", std::string("rille " RILLE_VERSION));
  cli.add_flag("--json", app.json, "print data as JSON");
  cli.fallthrough();
  RunArguments run;
  std::string id, name, value, code;
  PsArguments listed;
  std::vector<std::string> ids;
  bool follow = false, abandoned = false, all = false, providers = false;
  cli.add_option("-e", code, "run this Lua");
  auto* run_cmd = cli.add_subcommand("run", "run a workflow: rille run FILE [--x 1 ..]");
  run_cmd->add_option("FILE", run.file, "the script")->required();
  run_cmd->add_option("--tag", run.tag, "whose budget the run shares, see `rille budget`");
  run_cmd->add_option("--deadline", run.deadline, "how long it may take, e.g. 2h; then it is cancelled");
  auto* resume = cli.add_subcommand("resume", "continue an interrupted run");
  resume->add_option("RUN", run.resume, "its id, a unique beginning of it, or `last`")->required();
  resume->add_option("--with", run.with, "go on with this script, if it follows what is recorded");
  resume->add_flag("--retry-failed", run.retry_failed, "forget the error that ended it, and try that again");
  auto* fork = cli.add_subcommand("fork", "a new run that begins with the record of another");
  fork->add_option("RUN", run.resume, "its id, a unique beginning of it, or `last`")->required();
  fork->add_option("--from", run.fork_from, "the first entry to do anew: a key that `rille show` prints")->required();
  fork->add_flag("--rerent", run.rerent,
                 "keep what was done on leases that were open there; they get machines of their own");
  fork->add_option("--with", run.with, "go on with this script, if it follows what is recorded");
  auto* cancel = cli.add_subcommand("cancel", "end a run: it cleans up, and gives back what it has rented");
  cancel->add_option("RUN", id, "its id, a unique beginning of it, or `last`")->required();
  auto* suspend = cli.add_subcommand("suspend", "stop a run where it stands; `rille resume` goes on with it");
  suspend->add_option("RUN", id, "its id, a unique beginning of it, or `last`")->required();
  auto* ps = cli.add_subcommand("ps", "list runs");
  ps->add_option("-n", listed.limit, "at most so many")->check(CLI::Range(1, 1000000));
  ps->add_flag("--all", listed.with_children, "those that scripts have started, too");
  ps->add_option("--state", listed.state, "those only that are running, interrupted, suspended, done, failed, ..")
      ->check(
          CLI::IsMember({"running", "interrupted", "suspended", "done", "failed", "cancelled", "cleanup", "diverged"}));
  auto* rm = cli.add_subcommand("rm", "remove runs that have ended: their record and files, not what they cost");
  rm->add_option("RUN", ids, "their ids, unique beginnings of them, or `last`")->required();
  auto with_run = [&](const char* command, const char* text) {
    auto* sub = cli.add_subcommand(command, text);
    sub->add_option("RUN", id, "its id, a unique beginning of it, or `last`")->required();
    return sub;
  };
  auto* invalidate = with_run("invalidate", "forget an entry and all that came after it");
  invalidate->add_option("KEY", name, "a key that `rille show` prints")->required();
  auto* show = with_run("show", "one run: its steps, calls, leases");
  auto* logs = with_run("logs", "what a run printed");
  logs->add_flag("-f,--follow", follow, "go on until it ends");
  auto* leases = cli.add_subcommand("leases", "what is rented now");
  leases->add_flag("--all", all, "released ones, too");
  leases->add_flag("--all-providers", providers, "ask the providers what there is, also what no journal here knows");
  auto* release = cli.add_subcommand("release", "end a lease, or all leases of a run");
  release->add_option("LEASE|RUN", id, "which")->required();
  release->add_flag("--abandoned", abandoned, "")->group("");  // not for people: see abandon()
  auto* gc = cli.add_subcommand("gc", "release what no run will release");
  gc->add_option("--now", id, "a run that stands still: do not hold its leases any longer");
  gc->add_option("--unknown", name, "a machine that bears our tag and is in no journal here: end it");
  WatchArguments watching;
  auto* watch = cli.add_subcommand("watch", "stay, and do what is due: clean up, start schedules, resume what died");
  watch->add_option("--gc", watching.gc, "how often to clean up (5m)");
  watch->add_option("--resume-within", watching.resume_within, "leave runs alone that are silent for longer (24h)");
  watch->add_option("--tries", watching.tries, "of a run that gets no further (5)")->check(CLI::Range(1, 1000));
  watch->add_flag("--no-resume", watching.no_resume, "start schedules only");
  watch->add_option("--take", watching.take, "RUN: the watch goes on with this suspended run; and nothing else");
  watch->add_flag("--once", watching.once, "do what is due now, and end");
  auto* schedule = cli.add_subcommand("schedule", "scripts that `rille watch` starts again and again");
  engine::Schedule timed;
  auto* schedule_add = schedule->add_subcommand("add", "rille schedule add NAME WHEN FILE [--x 1 ..]");
  schedule_add->add_option("NAME", timed.name, "of the schedule; its runs are NAME-20261121T030000Z")->required();
  schedule_add->add_option("WHEN", timed.when, "`every 6h`, or as cron has it, in UTC: `0 3 * * *`")->required();
  schedule_add->add_option("FILE", timed.script, "the script; its own options follow")->required();
  schedule_add->add_option("--missed", timed.missed, "of times at which nothing watched: skip, one (the last), all")
      ->check(CLI::IsMember({"skip", "one", "all"}));
  schedule_add->add_option("--overlap", timed.overlap, "while its last run goes on: skip, queue, cancel, allow")
      ->check(CLI::IsMember({"skip", "queue", "cancel", "allow"}));
  schedule_add->add_option("--tag", timed.tag, "whose budget its runs share");
  auto* schedule_remove = schedule->add_subcommand("remove", "its runs stay");
  schedule_remove->add_option("NAME", name, "which")->required();
  auto* cost = cli.add_subcommand("cost", "what runs have cost");
  cost->add_option("RUN", id, "one run only");
  std::string by;
  bool reconcile = false;
  cost->add_option("--by", by, "sums by run, tag, month or provider")
      ->check(CLI::IsMember({"run", "tag", "month", "provider"}));
  cost->add_flag("--reconcile", reconcile, "ask the providers for their bills first");
  auto* budget = cli.add_subcommand("budget", "the limits of this home, and what is left of them");
  BudgetArguments limits;
  auto* budget_set = budget->add_subcommand("set", "set or remove limits");
  budget_set->add_option("--month", limits.month, "dollars per month, or none");
  budget_set->add_option("--tag", limits.tags, "NAME=dollars of all runs with that tag, or NAME=none");
  budget_set->add_option("--alert", limits.alert_percent, "warn at so many percent; 0: never")
      ->check(CLI::Range(0, 100));
  budget_set->add_option("--alert-url", limits.alert_url,
                         "also POST the warning there, as JSON; env:NAME: what that variable says");
  auto* audit = cli.add_subcommand("audit", "what was done for money, when, and whether the trail is whole");
  audit->add_option("RUN", id, "one run only");
  audit->add_option("--kept", name, "a hash that you noted down earlier: it must still be in the trail");
  auto* offers = cli.add_subcommand("offers", "what can be rented");
  OffersArguments wished;
  add_offers_options(*offers, wished);
  auto* quotas = cli.add_subcommand("quotas", "how much the accounts may rent, and what of it is used");
  std::vector<std::string> whose;
  std::string quota_region;
  quotas->add_option("--provider", whose, "of these providers only")->delimiter(',');
  quotas->add_option("--region", quota_region, "in this region only");
  auto* signal = with_run("signal", "answer a waiting run");
  signal->add_option("NAME", name, "which signal")->required();
  signal->add_option("VALUE", value, "JSON, or a string");
  SimulateArguments rehearse;
  std::string deadline;
  auto* simulate =
      cli.add_subcommand("simulate", "many runs on a simulated cloud: what it will cost, how long it takes");
  simulate->add_option("FILE", rehearse.file, "the script; its own options follow, after `--` if they have our names")
      ->required();
  simulate->add_option("-n,--runs", rehearse.runs, "how many; 1 is told as it goes")->check(CLI::Range(1, 10'000'000));
  simulate->add_option("--seed", rehearse.seed, "of the first run");
  simulate->add_option("--deadline", deadline, "e.g. 6h: the odds of being done by then");
  simulate->add_option("--weather", rehearse.weather, "how kind the cloud is")
      ->check(CLI::IsMember({"calm", "usual", "rough"}));
  auto* plan = cli.add_subcommand("plan", "what a script would rent, and what that costs");
  plan->add_option("FILE", rehearse.file, "the script; its own options follow")->required();
  auto* doctor = cli.add_subcommand("doctor", "what is present, what is missing, what that costs");
  LiveArguments live;
  std::string doctor_for;
  bool policy = false;
  auto* doctor_of = doctor->add_option("--provider", doctor_for, "try the keys of one provider, or of `all`");
  doctor->add_flag("--policy", policy, "the least that its keys must be allowed, as a document")->needs(doctor_of);
  auto* doctor_live =
      doctor->add_option("--live", live.provider, "rent its cheapest machine for some minutes, and try everything");
  doctor->add_option("--max-cost", live.max_cost, "dollars that this may cost at most (0.50)")
      ->needs(doctor_live)
      ->check(number_from(0, true));
  doctor->add_option("--gpu", live.gpu, "model and count, e.g. T4:1; else any, also none")->needs(doctor_live);
  doctor->add_option("--price", live.price, "dollars per hour, where the provider says none in dollars")
      ->needs(doctor_live)
      ->check(number_from(0));
  doctor->add_flag("--spot", live.spot, "a spot machine")->needs(doctor_live);
  doctor_of->excludes(doctor_live);
  TopArguments topping;
  auto* top = cli.add_subcommand("top", "what this machine's processors and GPUs do now, again and again");
  top->add_option("--interval", topping.interval, "between two readings")->capture_default_str();
  top->add_option("--count", topping.count, "so many readings; without it until it is ended")->check(number_from(1));
  std::string shell;
  auto* completion = cli.add_subcommand("completion", "what a shell reads to complete commands, options and ids");
  completion->add_option("SHELL", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  auto* repl = cli.add_subcommand("repl", "the prompt (also: rille alone)");
  cli.add_subcommand("agent", "what runs on an instance; started by Rille itself");

  for (const CLI::App* sub : cli.get_subcommands([](const CLI::App*) { return true; }))
    app.commands.push_back(sub->get_name());

  Words words = split_words(argc, argv, cli);
  run.script_arguments = rehearse.script_arguments = words.script;
  std::reverse(words.ours.begin(), words.ours.end());  // CLI11 takes them from the back
  try {
    cli.parse(words.ours);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return cli.exit(e);  // --help, --version
    fail(app, usage_error(cli, e));
    return 2;
  }
  if (app.json) app.terminal.keep_out_for_data();
  if (completion->parsed()) {
    const std::string text = completion_of(cli, shell);
    app.terminal.out(app.json ? Value().set("shell", shell).set("text", text).to_json_pretty() + "\n" : text);
    return 0;
  }
  if (doctor->parsed() && !live.provider.empty()) return doctor_live_command(app, live);
  if (doctor->parsed() && !doctor_for.empty()) return doctor_provider_command(app, doctor_for, policy);
  if (doctor->parsed()) return doctor_command(app);
  if (top->parsed()) return top_command(app, topping);
  if (!deadline.empty()) {
    Result<std::int64_t> ms = parse_duration_ms(deadline);
    if (!ms) return fail(app, ms.error()), 2;
    rehearse.deadline_ms = *ms;
  }
  if (simulate->parsed()) return simulate_command(app, rehearse);
  if (cli.count("-e") > 0) run.code = code;
  if (run.code && run_cmd->parsed())
    return fail(app, make_error(ErrorKind::invalid, fmt::format("-e is the whole script: '{}' is one more", run.file),
                                "run either")),
           2;
  if (run_cmd->parsed() && asks_for_help(words.script)) return script_help_command(app, run.file);
  if (run.code || run_cmd->parsed() || resume->parsed() || fork->parsed()) return run_command(app, run);
  if (offers->parsed()) return offers_command(app, wished);
  if (Result<> r = open_engine(app); !r) return fail(app, r.error());
  if (plan->parsed()) return plan_command(app, rehearse.file, rehearse.script_arguments);
  if (ps->parsed()) return ps_command(app, listed);
  if (rm->parsed()) return remove_command(app, ids);
  if (invalidate->parsed()) return invalidate_command(app, id, name);
  if (show->parsed()) return show_command(app, id);
  if (logs->parsed()) return logs_command(app, id, follow);
  if (cancel->parsed()) return cancel_command(app, id);
  if (suspend->parsed()) return suspend_command(app, id);
  if (leases->parsed()) return leases_command(app, all, providers);
  if (release->parsed()) return abandoned ? abandon_command(app, id) : release_command(app, id);
  if (gc->parsed()) return gc_command(app, id, name);
  if (watch->parsed()) return watch_command(app, watching);
  if (schedule_add->parsed()) return schedule_add_command(app, timed, words.script);
  if (schedule_remove->parsed()) return schedule_remove_command(app, name);
  if (schedule->parsed()) return schedule_command(app);
  if (quotas->parsed()) return quotas_command(app, whose, quota_region);
  if (cost->parsed()) return cost_command(app, id, by, reconcile);
  if (budget_set->parsed()) return budget_set_command(app, limits);
  if (budget->parsed()) return budget_command(app);
  if (audit->parsed()) return audit_command(app, id, name);
  if (signal->parsed()) return signal_command(app, id, name, value.empty() ? "true" : value);
  (void)repl;
  return repl_command(app, "");
}

// Text that could not be written is no success, whatever the command did.
int settle(App& app, int code) {
  errno = 0;
  std::cout.flush();  // CLI11's help
  int why = !app.terminal.lost() && !std::cout ? errno : app.terminal.lost();
  if (!why || why == EPIPE) return code;
  app.terminal.error(make_error(ErrorKind::io, fmt::format("cannot write to standard output: {}", std::strerror(why)),
                                "what a run prints is also in its log: rille logs RUN"),
                     false);
  return code ? code : 1;
}

}  // namespace rille::cli

int main(int argc, char** argv) {
  rille::cli::open_missing_streams();
  rille::store::count_no_memory();
  if (!std::getenv("RILLE_CORE_DUMPS")) rille::keep_no_core();
  int code = 0;
  {
    rille::cli::App app;
    code = rille::cli::run_main(app, argc, argv);
    code = rille::cli::settle(app, code);
  }
  if (!rille::device::lanes_settle(std::chrono::seconds(10))) _exit(code);  // it would run on beside the exit handlers
  return code;
}
