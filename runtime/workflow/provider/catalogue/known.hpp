// What is known of machines and regions although the providers' calls do not tell it: who made the GPUs, how they are
// joined, what network a type has, which rules a region keeps. Tables with their sources: known_types.cpp,
// known_regions.cpp. What is not known stays empty, and matches no query that asks for it. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/workflow/provider/gpu_facts.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

// Fills the empty ones of an offer's gpu_vendor, interconnect, rdma, network_gbps, disk_kind, cuda_max and compliance.
void complete(Offer& offer);

// The words of OfferQuery::interconnect: "pcie", "nvlink" (also with switches), "nvswitch", "xgmi" between the GPUs of
// one machine; "rdma" (of any kind), "infiniband", "roce", "efa", "erdma" between machines.
const std::vector<std::string>& interconnect_words();
bool has_interconnect(std::string_view interconnect, std::string_view rdma, std::string_view asked);

// The words of OfferQuery::compliance; what each says: docs/manual/choosing.md.
const std::vector<std::string>& compliance_tags();
std::vector<std::string> compliance_of(std::string_view provider, std::string_view region);

// gpu_facts(), which remembers.
const GpuFacts* known_gpu(std::string_view model, std::int64_t memory_bytes);
// Whether Rille's plug-in runs on a GPU of that model: compute capability 7.5 to 12.x.
bool runs_plugin(std::string_view model, std::int64_t memory_bytes);
// Machines without a GPU that gpu = "any" accepts: this one, and what stands for it in a simulation.
bool is_own_cpu(std::string_view provider);

// known_types.cpp
struct KnownType {
  std::string_view provider, type;  // "p4d.24xlarge", or "g4dn.*": all that begin so
  std::string_view interconnect, rdma;
  double network_gbps;
  std::string_view disk_kind;
};
const KnownType* find_known_type(std::string_view provider, std::string_view type);

}  // namespace rille::provider
