// A Slurm job that is an instance: its submission, its state in the queue, the meaning of Slurm's errors. Plain values
// and pure functions; any thread.
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
  std::int64_t ends_s = 0, preempted_s = 0;  // 0: unknown; not being preempted

  bool ended() const;                              // in a final state
  bool sent_back() const { return restarts > 0; }  // requeued after it had started
  bool can_start() const;  // false: it can never start, for example with a time limit beyond the partition's
};

// The squeue command for all jobs of this user, or for one.
std::vector<std::string> slurm_queue_words(const std::string& job = "");
std::vector<SlurmJob> read_slurm_queue(const std::string& text);

// The instance directory on its node. It derives from the tag, so the queue's entry is enough to find it.
std::string slurm_folder(const std::string& tag);

// The time limit of a job submitted at that time: the time to the machine's expiry, rounded up to Slurm's minutes.
std::int64_t slurm_minutes(const CreateRequest& request, std::int64_t now_us);

// The sbatch command; its standard input is slurm_script(). The job runs at most once and does not wait forever: Slurm
// must not restart it (--no-requeue), and drops it when it can no longer start in time (--deadline).
std::vector<std::string> slurm_submit_words(const CreateRequest& request, const SlurmSettings& settings,
                                            std::int64_t now_us);
// The batch script: makes the instance directory, starts an agent's keeper when `rille agent connect` asks for one
// (agent/daemon.hpp, D/agent.host), and ends everything when the job ends, its time is over, or no runner connects for
// long. At SIGUSR1, which Slurm sends before the job's end, it checks for a preemption and notifies the agent.
std::string slurm_script(const CreateRequest& request, const SlurmSettings& settings, std::int64_t now_us);

// The error of a failed command. network: its effect is unknown. `words`: the command, from which the message quotes
// the refused argument.
Error slurm_error(const std::string& command, const CommandResult& result, const std::vector<std::string>& words = {});

}  // namespace rille::provider
