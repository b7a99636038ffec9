// A Slurm job that serves as a machine: how it is submitted, how its state is read from the queue, what Slurm's errors
// mean. Plain values and pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/loop/command.hpp"
#include "runtime/workflow/provider/slurm/cluster.hpp"

namespace rille::provider {

// A row of squeue.
struct SlurmJob {
  std::string id, state, nodes, partition, reason, tag;
  std::int64_t restarts = 0, submitted_s = 0;
  std::int64_t ends_s = 0, preempted_s = 0;  // ends_s 0: unknown; preempted_s 0: not being preempted

  bool ended() const;                              // whether the job is in a final state
  bool sent_back() const { return restarts > 0; }  // Slurm has requeued the job after it had started
  bool can_start() const;  // false: the job can never start, for example if its time limit exceeds the partition's
};

// The squeue command that lists one job, or all jobs of this user if `job` is "".
std::vector<std::string> slurm_queue_words(const std::string& job = "");
std::vector<SlurmJob> read_slurm_queue(const std::string& text);

// The name of the instance directory on the job's node. It derives from the tag, which squeue shows, so no other record
// is needed to find it.
std::string slurm_folder(const std::string& tag);

// The time limit in minutes of a job submitted at now_us: the time until the machine's expiry, rounded up.
std::int64_t slurm_minutes(const CreateRequest& request, std::int64_t now_us);

// The sbatch command; its standard input is slurm_script(). The job runs at most once and does not wait forever: Slurm
// must not restart it (--no-requeue), and drops it when it can no longer start in time (--deadline).
std::vector<std::string> slurm_submit_words(const CreateRequest& request, const SlurmSettings& settings,
                                            std::int64_t now_us);
// The batch script: makes the instance directory, starts an agent's keeper when `rille agent connect` asks for one
// (agent/daemon.hpp, D/agent.host), and ends everything when Slurm ends the job, at the machine's expiry, or if no
// agent is started in time. At SIGUSR1, which Slurm sends before the job's end, it checks for a preemption and notifies
// the agent.
std::string slurm_script(const CreateRequest& request, const SlurmSettings& settings, std::int64_t now_us);

// The error of a failed command. Kind network: the command's effect is unknown. `words`: the command, so that the
// message can quote the refused argument.
Error slurm_error(const std::string& command, const CommandResult& result, const std::vector<std::string>& words = {});

}  // namespace rille::provider
