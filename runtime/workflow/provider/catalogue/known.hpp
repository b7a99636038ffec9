// Data about machines and regions that the providers' APIs do not return: GPU vendor, interconnect, network,
// compliance. The tables, with their sources, are in known_types.cpp and known_regions.cpp. An unknown value stays
// empty and does not match a query for that field. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/workflow/provider/gpu_facts.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

// Fills in an offer's empty fields among gpu_vendor, interconnect, rdma, network_gbps, disk_kind, cuda_max and
// compliance.
void complete(Offer& offer);

// The values of OfferQuery::interconnect: "pcie", "nvlink" (also with switches), "nvswitch", "xgmi" between the GPUs of
// one machine; "rdma" (of any kind), "infiniband", "roce", "efa", "erdma" between machines.
const std::vector<std::string>& interconnect_words();
bool has_interconnect(std::string_view interconnect, std::string_view rdma, std::string_view asked);

// The values of OfferQuery::compliance, explained in docs/manual/choosing.md.
const std::vector<std::string>& compliance_tags();
std::vector<std::string> compliance_of(std::string_view provider, std::string_view region);

// As gpu_facts(), with a cache of the results.
const GpuFacts* known_gpu(std::string_view model, std::int64_t memory_bytes);
// Whether the CUDA plug-in supports that model: compute capability 7.5 to 12.x.
bool runs_plugin(std::string_view model, std::int64_t memory_bytes);
// Whether gpu = "any" accepts a machine without a GPU from that provider: only from "local" and "sim".
bool is_own_cpu(std::string_view provider);

// A row of the table in known_types.cpp.
struct KnownType {
  std::string_view provider, type;  // `type`: a name such as "p4d.24xlarge", or a prefix such as "g4dn.*"
  std::string_view interconnect, rdma;
  double network_gbps;
  std::string_view disk_kind;
};
const KnownType* find_known_type(std::string_view provider, std::string_view type);

}  // namespace rille::provider
