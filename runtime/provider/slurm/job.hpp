// A job of Slurm that is an instance: what is submitted, what the queue says of it, what Slurm's refusals mean.
// Plain values and pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/loop/command.hpp"
#include "runtime/provider/slurm/cluster.hpp"

namespace rille::provider {

// A row of squeue.
struct SlurmJob {
  std::string id, state, nodes, partition, reason, tag;
  std::int64_t restarts = 0, submitted_s = 0;

  bool ended() const;       // its last state
  bool can_start() const;   // false: it waits for what cannot come, as a time that its partition does not allow
};

// The words that ask for all jobs of this user, or for one.
std::vector<std::string> slurm_queue_words(const std::string& job = "");
std::vector<SlurmJob> read_slurm_queue(const std::string& text);

// The instance's folder on its node. Its name comes from the tag, so the queue alone says where it is.
std::string slurm_folder(const std::string& tag);

// The words of sbatch, whose standard input is slurm_script().
std::vector<std::string> slurm_submit_words(const CreateRequest& request, const SlurmSettings& settings,
                                            std::int64_t now_us);
// The batch script: makes the instance's folder, starts an agent's keeper when `rille agent connect` asks for one
// (agent/daemon.hpp, D/agent.host), ends it all when the job is ended, the time is over, or nobody has come for long.
std::string slurm_script(const CreateRequest& request, const SlurmSettings& settings, std::int64_t now_us);

// How a command's failure is to be understood. network: nobody knows what became of it.
Error slurm_error(const std::string& command, const CommandResult& result);

}  // namespace rille::provider
