// A Slurm cluster's nodes, from `sinfo`, and the offers made from them. Plain values, pure functions; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

struct SlurmNode;

struct SlurmSettings {
  std::vector<std::string> via;         // prefix of each Slurm command: {"ssh", "login"}; empty: commands run locally
  std::vector<std::string> partitions;  // partitions to offer; empty: all partitions
  std::string account, qos;
  std::vector<std::string> options;         // further arguments of sbatch
  std::map<std::string, std::string> gpus;  // GPU model by GRES type: {"a100": "A100 80GB"}
  Micros price_micros_per_gpu_hour = 0;     // price for estimates, of a GPU or of a machine without GPUs
  std::string directory = "/tmp";           // parent of the instance directories on the nodes
  std::int64_t wait_ms = 300'000;           // how long a job may wait to start; 0: only free nodes are offered

  static Result<SlurmSettings> read(const Value& settings);           // error config: names the wrong field
  Result<> partitions_in(const std::vector<SlurmNode>& nodes) const;  // error config: `partitions` has an unknown name
};

// A node as part of one partition; a node in two partitions has two rows.
struct SlurmNode {
  std::string name, partition, state;
  std::int64_t cpus = 0, cpus_free = 0, memory_mib = 0, memory_mib_free = 0;
  std::map<std::string, int> gpus, gpus_free;  // number of GPUs by GRES type; "": GPUs without a type

  bool usable() const;  // whether the node accepts jobs, now or later
};

// The sinfo command whose output read_slurm_nodes parses.
std::vector<std::string> slurm_node_words();
std::vector<SlurmNode> read_slurm_nodes(const std::string& text);

// Parses GPU counts by type: "gpu:h100:4(S:0-1),gpu:a100:2" gives {h100: 4, a100: 2}.
std::map<std::string, int> read_slurm_gres(const std::string& text);

// One offer for each machine size that a partition can provide; at equal price, offers with free nodes come first. The
// offer's id encodes partition and GPUs.
std::vector<Offer> slurm_offers(const std::vector<SlurmNode>& nodes, const SlurmSettings& settings,
                                const OfferQuery& query);

// Parses an offer's id: "gpu/h100:2" -> partition "gpu", GRES "gpu:h100:2"; "cpu" -> no GRES.
struct SlurmAsk {
  std::string partition, gres;
};
SlurmAsk slurm_ask(const std::string& offer_id);

}  // namespace rille::provider
