#include "runtime/workflow/provider/catalogue/known.hpp"

#include <map>

namespace rille::provider {

namespace {

// range of compute capabilities that kernels/cuda/CMakeLists.txt builds for
constexpr int capability_least = 75, capability_end = 130;

// The machine type in an offer's id: "p4d.24xlarge" in "us-east-1/p4d.24xlarge:spot".
std::string_view type_in(std::string_view id) {
  if (const std::size_t slash = id.rfind('/'); slash != std::string_view::npos) id.remove_prefix(slash + 1);
  if (id.ends_with(":spot")) id.remove_suffix(5);
  return id;
}

std::string_view vendor_of(std::string_view gpu, std::int64_t memory_bytes) {
  if (known_gpu(gpu, memory_bytes)) return "nvidia";
  if (gpu.size() > 2 && gpu.starts_with("MI") && gpu[2] >= '0' && gpu[2] <= '9') return "amd";
  for (const auto& [words, vendor] :
       {std::pair("AMD", "amd"), std::pair("RADEON", "amd"), std::pair("INTEL", "intel"), std::pair("GAUDI", "intel"),
        std::pair("HABANA", "intel"), std::pair("RTX", "nvidia"), std::pair("GTX", "nvidia"),
        std::pair("K80", "nvidia"), std::pair("M60", "nvidia")})
    if (gpu.starts_with(words)) return vendor;
  return "";
}

}  // namespace

const GpuFacts* known_gpu(std::string_view model, std::int64_t memory_bytes) {
  // gpu_facts() compares words and is slow, and a list of offers has few models: so results are cached, up to a limit.
  constexpr std::size_t kept_max = 1024;
  thread_local std::map<std::pair<std::string, std::int64_t>, const GpuFacts*> kept;
  const auto at = kept.find({std::string(model), memory_bytes});
  if (at != kept.end()) return at->second;
  if (kept.size() >= kept_max) kept.clear();
  return kept[{std::string(model), memory_bytes}] = gpu_facts(model, memory_bytes);
}

bool runs_plugin(std::string_view model, std::int64_t memory_bytes) {
  const GpuFacts* facts = known_gpu(model, memory_bytes);
  return facts && facts->capability >= capability_least && facts->capability < capability_end;
}

void complete(Offer& o) {
  const std::string_view type = type_in(o.id);
  const KnownType* t = find_known_type(o.provider, type);
  // an offer of one zone has the id "TYPE@ZONE"
  if (!t) t = find_known_type(o.provider, type.substr(0, type.find('@')));
  if (t) {
    if (o.interconnect.empty() && o.gpu_count > 1) o.interconnect = t->interconnect;
    if (o.rdma.empty()) o.rdma = t->rdma;
    if (o.network_gbps <= 0) o.network_gbps = t->network_gbps;
    if (o.disk_kind.empty()) o.disk_kind = t->disk_kind;
  }
  if (o.gpu_count > 0 && o.gpu_vendor.empty()) o.gpu_vendor = vendor_of(o.gpu, o.gpu_memory_bytes);
  const auto is_named = [type = type_in(o.id)](const char* word) { return type.find(word) != std::string_view::npos; };
  if (o.gpu_count > 1 && o.interconnect.empty() && (is_named("SXM") || is_named("HBM3"))) o.interconnect = "nvlink";
  if (o.gpu_count > 1 && o.interconnect.empty())  // GPUs without NVLink are connected by PCIe
    if (const GpuFacts* facts = known_gpu(o.gpu, o.gpu_memory_bytes); facts && facts->nvlink_bytes_per_s == 0)
      o.interconnect = "pcie";
  // CUDA 13 dropped Volta and older GPUs (CUDA 13.0 release notes), so 12.9 is the newest version for them.
  if (o.gpu_count > 0 && o.cuda_max.empty())
    if (const GpuFacts* facts = known_gpu(o.gpu, o.gpu_memory_bytes); facts && facts->capability < capability_least)
      o.cuda_max = "12.9";
  if (o.compliance.empty()) o.compliance = compliance_of(o.provider, o.region);
}

const std::vector<std::string>& interconnect_words() {
  static const std::vector<std::string> words = {"pcie", "nvlink",     "nvswitch", "xgmi", "rdma",
                                                 "efa",  "infiniband", "roce",     "erdma"};
  return words;
}

bool has_interconnect(std::string_view interconnect, std::string_view rdma, std::string_view asked) {
  if (asked == "rdma") return !rdma.empty();
  if (asked == "nvlink") return interconnect == "nvlink" || interconnect == "nvswitch";
  return asked == interconnect || asked == rdma;
}

bool is_own_cpu(std::string_view provider) { return provider == "local" || provider == "sim"; }

}  // namespace rille::provider
