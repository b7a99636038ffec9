// A job of Slurm that is an instance: what is submitted, what the queue says of it, what Slurm's refusals mean.
// Plain values and pure functions; any thread.
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
  std::int64_t ends_s = 0, preempted_s = 0;  // 0: nobody knows yet; nobody has asked for its nodes

  bool ended() const;                              // its last state
  bool sent_back() const { return restarts > 0; }  // to the queue, after it had started
  bool can_start() const;  // false: it waits for what cannot come, as a time that its partition does not allow
};

// The words that ask for all jobs of this user, or for one.
std::vector<std::string> slurm_queue_words(const std::string& job = "");
std::vector<SlurmJob> read_slurm_queue(const std::string& text);

// The instance's folder on its node. Its name comes from the tag, so the queue alone says where it is.
std::string slurm_folder(const std::string& tag);

// The time limit of a job that is sent then: what is left until the machine's end, rounded up, since Slurm counts so.
std::int64_t slurm_minutes(const CreateRequest& request, std::int64_t now_us);

// The words of sbatch, whose standard input is slurm_script(). At most one such job ever runs, and none waits for ever:
// Slurm must not start it again (--no-requeue), and drops it when it could not begin any more (--deadline).
std::vector<std::string> slurm_submit_words(const CreateRequest& request, const SlurmSettings& settings,
                                            std::int64_t now_us);
// The batch script: makes the instance's folder, starts an agent's keeper when `rille agent connect` asks for one
// (agent/daemon.hpp, D/agent.host), ends it all when the job is ended, the time is over, or nobody has come for long.
// At SIGUSR1, which Slurm sends some time before the job's end, it asks whether that is a preemption, and tells the
// agent.
std::string slurm_script(const CreateRequest& request, const SlurmSettings& settings, std::int64_t now_us);

// How a command's failure is to be understood. network: nobody knows what became of it. `words`: those of the command,
// of which the message names what was refused.
Error slurm_error(const std::string& command, const CommandResult& result, const std::vector<std::string>& words = {});

}  // namespace rille::provider
