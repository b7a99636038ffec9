#include "runtime/workflow/provider/slurm/slurm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "runtime/core/base/send_by.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/outcome.hpp"
#include "runtime/workflow/provider/owner.hpp"
#include "runtime/workflow/provider/slurm/job.hpp"

namespace rille::provider {

namespace {

constexpr std::int64_t command_timeout_ms = 60'000, first_look_ms = 100, longest_look_ms = 5'000;

// The parts of a machine id: the job's number, and the folder name from the tag, since Slurm reuses job numbers.
struct Id {
  std::string job, folder;
};

Id read_id(const std::string& id) {
  const std::size_t dash = id.find('-');
  const std::string job = id.substr(0, dash);
  if (dash == std::string::npos || job.empty() || job.find_first_not_of("0123456789") != std::string::npos) return {};
  return {job, "rille-" + id.substr(dash + 1)};
}

std::string id_of(const std::string& job, const std::string& tag) { return job + slurm_folder(tag).substr(5); }

class Slurm final : public Provider, public Owned {
 public:
  Slurm(Loop& loop, SlurmSettings settings, Traits traits)
      : loop_(loop), settings_(std::move(settings)), traits_(std::move(traits)) {}
  const std::string& name() const override { return name_; }
  const Traits& traits() const override { return traits_; }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    RILLE_CO_TRY(const CommandResult done, co_await run(slurm_node_words(), "", token));
    if (!done.ok()) co_return named(slurm_error("sinfo", done), "offers");
    const std::vector<SlurmNode> nodes = read_slurm_nodes(done.out);
    if (Result<> there = settings_.partitions_in(nodes); !there) co_return named(there.error(), "offers");
    co_return slurm_offers(nodes, settings_, query);
  }

  // Submits a job and waits until it runs. A job that does not start in wait_ms is cancelled, since other offers may
  // have capacity.
  Async<Machine> create(CreateRequest request, CancelToken token) override {
    if (request.tag.empty())
      co_return named(
          make_error(ErrorKind::invalid, "slurm: create needs a tag", "this is a bug of Rille: please report it"),
          "create");
    const std::int64_t now_us = loop_.clock().wall_us();
    std::string script = slurm_script(request, settings_, now_us);
    const std::vector<std::string> words = slurm_submit_words(request, settings_, now_us);
    if (Result<> soon = check_send_by(request.send_by_wall_us, now_us); !soon) co_return named(soon.error(), "create");
    RILLE_CO_TRY(const CommandResult done, co_await run(words, std::move(script), token));
    if (!done.ok()) co_return named(slurm_error("sbatch", done, words), "create");
    const std::string job = done.out.substr(0, done.out.find_first_not_of("0123456789"));
    if (job.empty())
      co_return named(
          make_error(
              ErrorKind::network, "sbatch printed no job number: '" + done.out + "'",
              "does `sbatch --parsable` print it by hand? A wrapper may hide it; see squeue for a job that was queued"),
          "create");
    Result<Machine> made = co_await started(id_of(job, request.tag), request, now_us, token);
    if (!made) co_return named(made.error(), "create");
    made->expires_wall_us = request.expires_wall_us;
    co_return made;
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    RILLE_CO_TRY(const std::optional<SlurmJob> job, co_await look(id, token));
    if (job) co_return machine_of(*job);
    Machine gone;
    gone.id = id;
    co_return gone;
  }

  Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) override {
    RILLE_CO_TRY(const CommandResult done, co_await run(slurm_queue_words(), "", token));
    if (!done.ok()) co_return named(slurm_error("squeue", done), "list");
    std::vector<Machine> out;
    for (const SlurmJob& job : read_slurm_queue(done.out))
      if (!job.ended() && job.tag.starts_with(tag_prefix) && job.tag.starts_with("rille-"))
        out.push_back(machine_of(job));
    co_return out;
  }

  // Looks the job up first: scancel reports no error for an unknown job, and would cancel a later job with a reused
  // number.
  Async<> terminate(std::string id, CancelToken token) override {
    RILLE_CO_TRY(const std::optional<SlurmJob> job, co_await look(id, token));
    if (!job || job->ended()) co_return success();
    std::vector<std::string> words{"scancel", job->id};
    RILLE_CO_TRY(const CommandResult done, co_await run(std::move(words), "", token));
    if (!done.ok()) co_return named(slurm_error("scancel", done), "terminate");
    co_return success();
  }

  // The owner is the cluster, since job numbers are per cluster; its name is in the line "ClusterName = lab".
  Async<std::string> owner(std::string, CancelToken token) override {
    if (!owner_.empty()) co_return owner_;
    std::vector<std::string> words{"scontrol", "show", "config"};
    RILLE_CO_TRY(const CommandResult done, co_await run(std::move(words), "", token));
    if (!done.ok()) co_return named(slurm_error("scontrol", done), "owner");
    std::istringstream lines(done.out);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string name, equals, cluster;
      if (fields >> name >> equals >> cluster && name == "ClusterName" && equals == "=") owner_ = "cluster " + cluster;
    }
    co_return owner_;
  }

 private:
  Async<Machine> started(std::string id, const CreateRequest& request, std::int64_t sent_us, CancelToken token) {
    const std::int64_t until_ms = now_ms() + std::max<std::int64_t>(settings_.wait_ms, command_timeout_ms);
    for (std::int64_t rest_ms = first_look_ms;; rest_ms = std::min(2 * rest_ms, longest_look_ms)) {
      Result<std::optional<SlurmJob>> job = co_await look(id, token);
      if (!job && !job.error().retryable) co_return left_open(job.error());
      const bool back = job && *job && (*job)->sent_back() && !(*job)->ended();
      if (job && *job && (*job)->ended() && (*job)->nodes.empty())
        co_return make_error(
            ErrorKind::capacity, fmt::format("job {} was dropped from the queue ({})", (*job)->id, (*job)->state),
            "it could no longer start in time, or was cancelled: rent again, perhaps in another partition");
      if (job && *job && !back && ((*job)->state == "RUNNING" || (*job)->ended())) co_return machine_of(**job);
      const bool never = back || (job && *job && !(*job)->can_start());
      if (never || now_ms() >= until_ms) {
        if (Result<> ended = co_await terminate(id, token); !ended) co_return left_open(ended.error());
        const std::string reason = job && *job ? (*job)->reason : "unknown";
        co_return never
            ? cannot_start(**job, request, sent_us)
            : make_error(ErrorKind::capacity,
                         fmt::format("job {} has not started within {} ({})", read_id(id).job,
                                     format_duration_ms(settings_.wait_ms), reason),
                         "raise `wait` in the provider's settings to wait longer in the queue, or ask for fewer GPUs");
      }
      RILLE_CO_CHECK(co_await sleep_for(loop_, rest_ms, token));
    }
  }

  Error cannot_start(const SlurmJob& job, const CreateRequest& request, std::int64_t sent_us) const {
    if (job.sent_back())
      return make_error(ErrorKind::capacity, fmt::format("job {} was requeued ({})", job.id, job.reason),
                        "its nodes were preempted, or one of them failed (`sinfo -R` shows it): rent again");
    if (job.reason.starts_with("PartitionTimeLimit") || job.reason.starts_with("PartitionConfig"))
      return make_error(ErrorKind::config,
                        fmt::format("partition '{}' does not allow '{}' for {} ({})", job.partition, request.offer.id,
                                    format_duration_ms(slurm_minutes(request, sent_us) * 60'000), job.reason),
                        "use a shorter ttl or another partition: sinfo -o '%P %l'");
    return make_error(ErrorKind::config, fmt::format("job {} cannot start: {}", job.id, job.reason),
                      "check partition, account, qos and options in the settings");
  }

  // The job of a machine id, from squeue; nullopt: the job no longer exists.
  Async<std::optional<SlurmJob>> look(std::string id, CancelToken token) {
    const Id own = read_id(id);
    if (own.job.empty()) co_return std::optional<SlurmJob>();
    RILLE_CO_TRY(const CommandResult done, co_await run(slurm_queue_words(own.job), "", token));
    if (!done.ok() && done.err.find("Invalid job id") != std::string::npos) co_return std::optional<SlurmJob>();
    if (!done.ok()) co_return named(slurm_error("squeue", done), "describe");
    for (SlurmJob& job : read_slurm_queue(done.out))
      if (job.id == own.job && slurm_folder(job.tag) == own.folder) co_return std::optional<SlurmJob>(std::move(job));
    co_return std::optional<SlurmJob>();
  }

  // A job that Slurm has requeued lost its node and files, so its machine counts as lost. The lease layer cancels the
  // job before it requests another machine; if the job starts again, its script ends at once.
  Machine machine_of(const SlurmJob& job) const {
    Machine m;
    m.id = id_of(job.id, job.tag);
    m.tag = job.tag;
    if (job.ended()) m.state = MachineState::gone;
    else if (job.sent_back() || (job.state != "RUNNING" && job.state != "PENDING" && job.state != "CONFIGURING" &&
                                 job.state != "SUSPENDED"))
      m.state = MachineState::terminating;
    else m.state = job.state == "RUNNING" ? MachineState::live : MachineState::pending;
    m.created_wall_us = job.submitted_s * 1'000'000;
    if (m.state == MachineState::live && job.preempted_s > 0)  // the preemption's grace period has begun
      m.notice_wall_us = std::max(job.ends_s, job.preempted_s) * 1'000'000;
    m.channel.argv_prefix = settings_.via;
    m.channel.quoted = !settings_.via.empty();
    const std::string wanted = "--jobid=" + job.id;
    for (const char* word : {"srun", wanted.c_str(), "--overlap", "--unbuffered", "--quiet", "--nodes=1", "--ntasks=1",
                             "--mpi=none", "--chdir=/", "--export=HOME,PATH,USER,LOGNAME,SHELL,LANG,XDG_CACHE_HOME"})
      m.channel.argv_prefix.emplace_back(word);
    m.channel.directory = settings_.directory + "/" + slurm_folder(job.tag);
    m.details.set("job", job.id).set("partition", job.partition).set("nodes", job.nodes).set("state", job.state);
    if (job.state == "PENDING") m.details.set("reason", job.reason);
    return m;
  }

  Async<CommandResult> run(std::vector<std::string> words, std::string input, CancelToken token) {
    ChannelSpec where;
    where.argv_prefix = settings_.via;
    where.quoted = !settings_.via.empty();
    CommandOptions options;
    options.argv = where.command(words);
    options.input = std::move(input);
    options.timeout_ms = command_timeout_ms;
    const std::string program = options.argv.front();
    Result<CommandResult> done = co_await run_command(loop_, std::move(options), token);
    if (!done && done.error().kind == ErrorKind::io)
      co_return named(make_error(ErrorKind::config, fmt::format("the command `{}` is not found", program),
                                 "install Slurm's client, or name a login node: \"via\": [\"ssh\", \"login\"]"),
                      "run");
    co_return done;
  }

  std::int64_t now_ms() const { return loop_.clock().monotonic_ns() / 1'000'000; }

  Error named(Error error, const char* operation) const {
    error.provider = name_;
    if (error.operation.empty()) error.operation = operation;
    return error;
  }

  Loop& loop_;
  SlurmSettings settings_;
  Traits traits_;
  std::string name_ = "slurm", owner_;
};

}  // namespace

Result<std::unique_ptr<Provider>> make_slurm_provider(Setup setup) {
  RILLE_TRY(SlurmSettings settings, SlurmSettings::read(setup.settings));
  Traits traits;
  traits.create_timeout_ms = command_timeout_ms;
  traits.visibility_lag_ms = 2'000;
  traits.look_every_ms = 60'000;
  traits.teardown_ms = 5 * 60'000;  // time limit rounded up to minutes, grace before the kill, and a busy controller
  traits.dead_man = DeadMan::provider;
  traits.owned = true;
  RILLE_TRY(traits, read_traits(setup.settings["traits"], std::move(traits)));
  return std::unique_ptr<Provider>(std::make_unique<Slurm>(setup.loop, std::move(settings), std::move(traits)));
}

}  // namespace rille::provider
