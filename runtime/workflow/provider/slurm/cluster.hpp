// What a Slurm cluster has, as `sinfo` tells it, and what of it is offered. Plain values, pure functions; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

struct SlurmNode;

struct SlurmSettings {
  std::vector<std::string> via;         // words before each of Slurm's commands: {"ssh", "login"}; empty: here
  std::vector<std::string> partitions;  // only these are offered; empty: all
  std::string account, qos;
  std::vector<std::string> options;         // more words for sbatch
  std::map<std::string, std::string> gpus;  // model of a GRES type: {"a100": "A100 80GB"}
  Micros price_micros_per_gpu_hour = 0;     // what a GPU, or a machine without one, shall count as
  std::string directory = "/tmp";           // under which an instance has its folder, on its node
  std::int64_t wait_ms = 300'000;           // for a job to start; 0: only what is free is offered

  static Result<SlurmSettings> read(const Value& settings);           // config: names the field
  Result<> partitions_in(const std::vector<SlurmNode>& nodes) const;  // config: one of them is in none
};

// A node in a partition.
struct SlurmNode {
  std::string name, partition, state;
  std::int64_t cpus = 0, cpus_free = 0, memory_mib = 0, memory_mib_free = 0;
  std::map<std::string, int> gpus, gpus_free;  // by GRES type, "" without one

  bool usable() const;  // takes jobs, now or once others have ended
};

// The words of sinfo that read_slurm_nodes understands.
std::vector<std::string> slurm_node_words();
std::vector<SlurmNode> read_slurm_nodes(const std::string& text);

// "gpu:h100:4(S:0-1),gpu:a100:2" -> {h100: 4, a100: 2}
std::map<std::string, int> read_slurm_gres(const std::string& text);

// A machine of each size that a partition can give; at each price those first that are free now. The id says what to
// ask for.
std::vector<Offer> slurm_offers(const std::vector<SlurmNode>& nodes, const SlurmSettings& settings,
                                const OfferQuery& query);

// What an offer's id asks for: "gpu/h100:2" -> partition "gpu", GRES "gpu:h100:2"; "cpu" -> no GRES.
struct SlurmAsk {
  std::string partition, gres;
};
SlurmAsk slurm_ask(const std::string& offer_id);

}  // namespace rille::provider
