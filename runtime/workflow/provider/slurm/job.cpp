#include "runtime/workflow/provider/slurm/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/workflow/provider/ssh/scripts.hpp"

namespace rille::provider {

namespace {

// The environment variables that a job inherits from the submitting process: paths, no secrets.
constexpr const char* exported = "--export=HOME,PATH,USER,LOGNAME,SHELL,LANG,XDG_CACHE_HOME";

constexpr std::int64_t warned_s = 120;             // the job's script gets SIGUSR1 this long before the job's end
constexpr std::int64_t deadline_minutes_more = 5;  // minutes of slack in sbatch's --deadline

// Part of the batch script. Uses $end (expiry in seconds; 0: none), $patience (seconds to wait for the first agent),
// $machine (the text of machine.json) and finish().
constexpr const char* keep_script = R"sh(
[ "${SLURM_RESTART_COUNT:-0}" -eq 0 ] || exit 0  # the lease has already been replaced
mkdir "$root/$name" || exit 1
mkdir "$root/$name/work"
dir=$(cd "$root/$name" && pwd -P) || exit 1
: >"$dir/agent.host"
printf '%s\n' "$machine" >"$dir/machine.json.new"
mv "$dir/machine.json.new" "$dir/machine.json"
end_job() { trap '' TERM; kill "$pause" 2>/dev/null; finish; exit 0; }
trap end_job TERM
notice() {  # only a job that is preempted has such a time; one whose own time is nearly over has none
  told=$(SLURM_TIME_FORMAT=%s squeue -h -j "$SLURM_JOB_ID" -O 'EndTime:32|,PreemptTime:32|' 2>/dev/null | tr -d ' ')
  case $told in [0-9]*\|[0-9]*\|) ;; *) return 0 ;; esac
  printf '{"deadline_wall_us":%s000000}\n' "${told%%|*}" >"$dir/notice.json.new" &&
    mv "$dir/notice.json.new" "$dir/notice.json"
}
trap notice USR1
pause= used= rest=0.1
quiet_until=$(($(date +%s) + patience))
while [ -e "$dir/machine.json" ]; do
  now=$(date +%s)
  [ "$end" -eq 0 ] || [ "$now" -lt "$end" ] || break
  if [ -e "$dir/agent.request" ]; then
    program=$(cat "$dir/agent.request")
    RILLE_INSTANCE=$dir "$program" agent keeper --dir "$dir" </dev/null >/dev/null 2>>"$dir/agent.log" &
    rm -f "$dir/agent.request"
    used=yes rest=1
  fi
  [ -n "$used" ] || [ "$now" -lt "$quiet_until" ] || break
  sleep "$rest" &
  pause=$!
  wait "$pause"
done
end_job
)sh";

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream cells(line);
  for (std::string cell; std::getline(cells, cell, '|');) {
    cell.erase(cell.find_last_not_of(" \r") + 1);
    out.push_back(std::move(cell));
  }
  return out;
}

// A count, or seconds since 1970 up to the year 2255: converted to microseconds they fit 63 bits.
std::int64_t number_of(const std::string& text) {
  std::int64_t out = 0;
  std::istringstream(text) >> out;
  return std::clamp<std::int64_t>(out, 0, 8'999'999'999);
}

template <std::size_t N>
bool one_of(const std::string& word, const char* const (&all)[N]) {
  return std::any_of(std::begin(all), std::end(all), [&](const char* w) { return word.starts_with(w); });
}

struct Refusal {
  const char* said;  // a text in the command's output
  ErrorKind kind;
  const char* hint;
  const char* about = "";  // the sbatch options that the refusal is about
};

// Errors that prove that the command had no effect; any other error may have had one. The first match counts.
constexpr Refusal refusals[] = {
    {"node configuration is not available", ErrorKind::capacity, "no node of the partition has that much",
     "--partition= --gres= --cpus-per-task= --mem="},
    {"partition configuration not available", ErrorKind::capacity, "the partition is down, or allows less: sinfo",
     "--partition="},
    {"nvalid partition", ErrorKind::config, "sinfo -s lists the partitions", "--partition="},
    {"nvalid account", ErrorKind::config,
     "check `account` in the settings; sacctmgr show assoc user=$USER lists your accounts", "--account= --partition="},
    {"nvalid qos", ErrorKind::config, "check `qos` in the settings; sacctmgr show qos lists the possible values",
     "--qos= --account="},
    {"eservation is invalid", ErrorKind::config, "scontrol show reservation lists them", "--reservation="},
    {"to requested reservation", ErrorKind::auth, "scontrol show reservation says whose it is", "--reservation="},
    {"eservation not usable now", ErrorKind::capacity, "scontrol show reservation says from when to when it is",
     "--reservation="},
    {"eservation is in use", ErrorKind::capacity, "wait, or release what is rented there", "--reservation="},
    {"nvalid generic resource", ErrorKind::config, "sinfo -o '%P %G' lists what nodes have", "--gres="},
    {"nvalid feature", ErrorKind::config, "check `options` in the settings, which ask for that feature",
     "--constraint="},
    {"accounting/QOS policy", ErrorKind::quota, "release what is rented, or ask for less", "--qos= --account="},
    {"ime limit", ErrorKind::config, "use a shorter ttl, or a partition that allows it: sinfo -o '%P %l'",
     "--time= --partition="},
    {"group not permitted", ErrorKind::auth, "the partition is for other groups", "--partition="},
    {"Host key verification failed", ErrorKind::config, "connect once by hand, and compare its fingerprint"},
    {"ermission denied (", ErrorKind::auth, "the ssh of `via` has to work without a password: -o BatchMode=yes"},
    {"ermission denied", ErrorKind::auth, "does `sbatch` work by hand there?"},
    {"nrecognized option", ErrorKind::config, "check `options` in the settings; Slurm 20.11 or newer is needed"},
    {"ommand not found", ErrorKind::config,
     "Slurm's commands must be in the PATH of the login node, which `via` names"},
    {": not found", ErrorKind::config, "Slurm's commands must be in the PATH of the login node, which `via` names"},
};

// Errors after which it is unknown whether the command had an effect.
constexpr Refusal silences[] = {
    {"contact slurm controller", ErrorKind::network, "`scontrol ping` there says whether Slurm's controller is up"},
    {"not establish a configuration source", ErrorKind::network,
     "is there a slurm.conf? SLURM_CONF names it, or `via` leads to a login node"},
    {"unge", ErrorKind::network, "is munged running there? Slurm signs with it: munge -n | unmunge"},
    {"ould not resolve hostname", ErrorKind::network, "`via` in the settings names the login node"},
    {"onnection refused", ErrorKind::network, "is the login node of `via` up?"},
};

// Only the line with `words`: later lines may be advice, such as "Try 'sbatch --help'".
std::string line_with(const std::string& text, const char* words) {
  const std::size_t at = text.find(words);
  const std::size_t begin = text.rfind('\n', at) + 1;  // without a newline before: npos + 1 = 0
  return text.substr(begin, text.find('\n', at) - begin);
}

std::string plain(std::string said) {
  for (const char* prefix : {": error: ", ": fatal: "})
    if (const std::size_t at = said.find(prefix); at != std::string::npos) said.erase(0, at + 9);
  return said;
}

// " (--partition=gpu --account=x)": the arguments that a refusal concerns.
std::string asked_for(const Refusal& refusal, const std::vector<std::string>& words) {
  std::string out;
  std::istringstream options(refusal.about);
  for (std::string option; options >> option;)
    for (const std::string& word : words)
      if (word.starts_with(option)) out += (out.empty() ? "" : " ") + word;
  return out.empty() ? out : " (" + out + ")";
}

}  // namespace

bool SlurmJob::ended() const {
  static constexpr const char* last[] = {"COMPLETED", "FAILED",        "CANCELLED", "TIMEOUT",  "NODE_FAIL",
                                         "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED"};
  return one_of(state, last);
}

bool SlurmJob::can_start() const {
  static constexpr const char* never[] = {"PartitionTimeLimit",
                                          "PartitionNodeLimit",
                                          "PartitionConfig",
                                          "BadConstraints",
                                          "DependencyNeverSatisfied",
                                          "JobHeld",
                                          "InvalidAccount",
                                          "InvalidQOS",
                                          "AccountNotAllowed",
                                          "QOSNotAllowed",
                                          "launch failed"};
  return state != "PENDING" || !one_of(reason, never);
}

std::vector<std::string> slurm_queue_words(const std::string& job) {
  std::vector<std::string> out{"env", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "-t", "all"};
  if (job.empty()) out.push_back("--me");
  else out.insert(out.end(), {"-j", job});
  out.insert(out.end(), {"-O",
                         "JobID:32|,State:32|,RestartCnt:16|,NodeList:256|,SubmitTime:32|,Partition:256|,"
                         "Comment:256|,Reason:100|,EndTime:32|,PreemptTime:32|"});
  return out;
}

std::vector<SlurmJob> read_slurm_queue(const std::string& text) {
  std::vector<SlurmJob> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() < 10) continue;
    out.push_back({cells[0], cells[1], cells[3], cells[5], cells[7], cells[6], number_of(cells[2]), number_of(cells[4]),
                   number_of(cells[8]), number_of(cells[9])});
  }
  return out;
}

std::string slurm_folder(const std::string& tag) { return "rille-" + derive_hex({"slurm", tag}, 16); }

std::int64_t slurm_minutes(const CreateRequest& request, std::int64_t now_us) {
  return (std::max<std::int64_t>(request.expires_wall_us - now_us, 1) + 59'999'999) / 60'000'000;
}

std::vector<std::string> slurm_submit_words(const CreateRequest& request, const SlurmSettings& settings,
                                            std::int64_t now_us) {
  const SlurmAsk ask = slurm_ask(request.offer.id);
  std::vector<std::string> out{"sbatch",
                               "--parsable",
                               "--no-requeue",
                               "--nodes=1",
                               "--ntasks=1",
                               "--chdir=/",
                               "--output=/dev/null",
                               exported,
                               "--job-name=" + request.tag,
                               "--comment=" + request.tag,
                               "--partition=" + ask.partition,
                               fmt::format("--cpus-per-task={}", std::max(1, request.offer.vcpus)),
                               fmt::format("--signal=B:USR1@{}", warned_s)};
  if (request.offer.memory_bytes > 0) out.push_back(fmt::format("--mem={}M", request.offer.memory_bytes >> 20));
  if (!ask.gres.empty()) out.push_back("--gres=" + ask.gres);
  if (request.expires_wall_us > 0) {
    const std::int64_t time = slurm_minutes(request, now_us), wait = (settings.wait_ms + 59'999) / 60'000;
    out.push_back(fmt::format("--time={}", time));
    out.push_back(fmt::format("--deadline=now+{}minutes", time + wait + deadline_minutes_more));
  }
  if (!settings.account.empty()) out.push_back("--account=" + settings.account);
  const std::string qos = request.extra.text("qos", settings.qos), reserved = request.extra.text("reservation");
  if (!qos.empty()) out.push_back("--qos=" + qos);
  if (!reserved.empty()) out.push_back("--reservation=" + reserved);
  out.insert(out.end(), settings.options.begin(), settings.options.end());
  return out;
}

std::string slurm_script(const CreateRequest& request, const SlurmSettings& settings, std::int64_t now_us) {
  Value machine;
  machine.set("id", slurm_folder(request.tag)).set("tag", request.tag).set("created_wall_us", now_us);
  request.tell_end(machine);
  machine.set("terminating", false);
  const std::string end_all = std::string(ssh_scripts::begin) + ssh_scripts::terminate;
  return fmt::format(
      "#!/bin/sh\ntrap : USR1\n"
      "# An instance of Rille (`rille leases`): it keeps this allocation until it is released.\numask 077\n"
      "root={} name={} end={} patience={}\nmachine={}\nfinish() {{ sh -c {} sh \"$root\" \"$name\"; }}\n{}",
      shell_quote(settings.directory), slurm_folder(request.tag), (request.expires_wall_us + 999'999) / 1'000'000,
      std::max<std::int64_t>(60, request.orphan_after_ms / 1000), shell_quote(machine.to_json()), shell_quote(end_all),
      keep_script);
}

Error slurm_error(const std::string& command, const CommandResult& result, const std::vector<std::string>& words) {
  const auto has = [&result](const Refusal& r) { return result.err.find(r.said) != std::string::npos; };
  for (const Refusal& r : refusals)
    if (has(r))
      return make_error(
          r.kind, fmt::format("{} refuses: {}{}", command, plain(line_with(result.err, r.said)), asked_for(r, words)),
          r.hint);
  std::string said = plain(result.last_words());
  if (said.empty()) said = result.status.text();
  const Refusal* const known = std::find_if(std::begin(silences), std::end(silences), has);
  return make_error(ErrorKind::network, fmt::format("{} fails: {}", command, said),
                    known == std::end(silences) ? "does the command work by hand?" : known->hint)
      .with_retry();
}

}  // namespace rille::provider
