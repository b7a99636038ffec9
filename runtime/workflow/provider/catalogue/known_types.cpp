// Instance types: the interconnects of GPUs and machines. Only values that the vendors guarantee, never "up to".
//   aws      https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html and "Elastic Fabric Adapter"
//   azure    https://learn.microsoft.com/azure/virtual-machines/sizes/overview, "GPU accelerated", each series' page
//   gcp      https://cloud.google.com/compute/docs/gpus/gpu-network-bandwidth
//   alibaba  https://www.alibabacloud.com/help/ecs "GPU-accelerated compute-optimized", "eRDMA"
//   tencent  https://www.tencentcloud.com/document/product/560 and "High Performance Computing Cluster"
//   huawei   https://support.huaweicloud.com/ "GPU-accelerated ECSs"
//   lambda   the types' own descriptions: SXM boards of eight have switches
#include <algorithm>

#include "runtime/workflow/provider/catalogue/known.hpp"

namespace rille::provider {

namespace {

constexpr KnownType types[] = {
    {"aws", "p3.8xlarge", "nvlink", "", 10, "network"},
    {"aws", "p3.16xlarge", "nvlink", "", 25, "network"},
    {"aws", "p3dn.24xlarge", "nvlink", "efa", 100, "nvme"},
    {"aws", "p4d.24xlarge", "nvswitch", "efa", 400, "nvme"},
    {"aws", "p4de.24xlarge", "nvswitch", "efa", 400, "nvme"},
    {"aws", "p5.4xlarge", "", "efa", 100, "nvme"},
    {"aws", "p5.48xlarge", "nvswitch", "efa", 3200, "nvme"},
    {"aws", "p5e.48xlarge", "nvswitch", "efa", 3200, "nvme"},
    {"aws", "p5en.48xlarge", "nvswitch", "efa", 3200, "nvme"},
    {"aws", "p6-b200.48xlarge", "nvswitch", "efa", 3200, "nvme"},
    {"aws", "g4dn.12xlarge", "pcie", "", 50, "nvme"},
    {"aws", "g4dn.metal", "pcie", "", 100, "nvme"},
    {"aws", "g4dn.*", "pcie", "", 0, "nvme"},
    {"aws", "g5.12xlarge", "pcie", "", 40, "nvme"},
    {"aws", "g5.24xlarge", "pcie", "", 50, "nvme"},
    {"aws", "g5.48xlarge", "pcie", "", 100, "nvme"},
    {"aws", "g5.*", "pcie", "", 0, "nvme"},
    {"aws", "g6.12xlarge", "pcie", "", 40, "nvme"},
    {"aws", "g6.24xlarge", "pcie", "", 50, "nvme"},
    {"aws", "g6.48xlarge", "pcie", "", 100, "nvme"},
    {"aws", "g6.*", "pcie", "", 0, "nvme"},
    {"aws", "g6e.12xlarge", "pcie", "", 100, "nvme"},
    {"aws", "g6e.24xlarge", "pcie", "", 200, "nvme"},
    {"aws", "g6e.48xlarge", "pcie", "", 400, "nvme"},
    {"aws", "g6e.*", "pcie", "", 0, "nvme"},
    {"azure", "Standard_ND40rs_v2", "nvlink", "infiniband", 100, ""},
    {"azure", "Standard_ND96asr_v4", "nvswitch", "infiniband", 1600, "nvme"},
    {"azure", "Standard_ND96amsr_A100_v4", "nvswitch", "infiniband", 1600, "nvme"},
    {"azure", "Standard_ND96isr_H100_v5", "nvswitch", "infiniband", 3200, "nvme"},
    {"azure", "Standard_ND96isr_H200_v5", "nvswitch", "infiniband", 3200, "nvme"},
    {"azure", "Standard_ND96isr_MI300X_v5", "xgmi", "infiniband", 3200, "nvme"},
    {"azure", "Standard_NC24ads_A100_v4", "", "", 20, "nvme"},
    {"azure", "Standard_NC48ads_A100_v4", "", "", 40, "nvme"},
    {"azure", "Standard_NC96ads_A100_v4", "", "", 80, "nvme"},
    {"azure", "Standard_NC40ads_H100_v5", "", "", 40, "nvme"},
    {"azure", "Standard_NC80adis_H100_v5", "", "", 80, "nvme"},
    {"gcp", "a2-highgpu-1g", "", "", 24, "network"},
    {"gcp", "a2-highgpu-2g", "nvlink", "", 32, "network"},
    {"gcp", "a2-highgpu-4g", "nvlink", "", 50, "network"},
    {"gcp", "a2-highgpu-8g", "nvswitch", "", 100, "network"},
    {"gcp", "a2-megagpu-16g", "nvswitch", "", 100, "network"},
    {"gcp", "a2-ultragpu-1g", "", "", 24, "nvme"},
    {"gcp", "a2-ultragpu-2g", "nvlink", "", 32, "nvme"},
    {"gcp", "a2-ultragpu-4g", "nvlink", "", 50, "nvme"},
    {"gcp", "a2-ultragpu-8g", "nvswitch", "", 100, "nvme"},
    {"gcp", "a3-highgpu-1g", "", "", 25, "nvme"},
    {"gcp", "a3-highgpu-2g", "nvlink", "", 50, "nvme"},
    {"gcp", "a3-highgpu-4g", "nvlink", "", 100, "nvme"},
    {"gcp", "a3-highgpu-8g", "nvswitch", "", 1000, "nvme"},
    {"gcp", "a3-megagpu-8g", "nvswitch", "", 1800, "nvme"},
    {"gcp", "a3-ultragpu-8g", "nvswitch", "roce", 3600, "nvme"},
    {"gcp", "a4-highgpu-8g", "nvswitch", "roce", 3600, "nvme"},
    {"gcp", "g2-standard-24", "pcie", "", 32, "network"},
    {"gcp", "g2-standard-48", "pcie", "", 50, "network"},
    {"gcp", "g2-standard-96", "pcie", "", 100, "network"},
    {"gcp", "g2-*", "", "", 0, "network"},
    {"gcp", "n1-*", "", "", 0, "network"},
    {"gcp", "n2-*", "", "", 0, "network"},
    {"gcp", "e2-*", "", "", 0, "network"},
    {"alibaba", "ecs.gn6v-*", "nvlink", "", 0, "network"},
    {"alibaba", "ecs.gn6e-*", "nvlink", "", 0, "network"},
    {"alibaba", "ecs.gn7-*", "nvlink", "", 0, "network"},
    {"alibaba", "ecs.gn7e-*", "nvlink", "", 0, "network"},
    {"alibaba", "ecs.ebmgn7.*", "nvswitch", "", 0, "network"},
    {"alibaba", "ecs.ebmgn7e.*", "nvswitch", "", 0, "network"},
    {"alibaba", "ecs.ebmgn7ex.*", "nvswitch", "erdma", 0, "network"},
    {"alibaba", "ecs.ebmgn8v.*", "nvswitch", "erdma", 0, "network"},
    {"tencent", "GN10Xp.*", "nvlink", "", 0, ""},
    {"tencent", "GT4.*", "nvlink", "", 0, ""},
    {"tencent", "HCCPNV4h.*", "nvswitch", "roce", 100, ""},
    {"tencent", "HCCPNV4sn.*", "nvswitch", "roce", 0, ""},
    {"tencent", "HCCPNV5.*", "nvswitch", "roce", 0, ""},
    {"huawei", "p2v.*", "nvlink", "", 0, ""},
    {"huawei", "p2vs.*", "nvlink", "", 0, ""},
    {"lambda", "gpu_8x_v100*", "nvlink", "", 0, "nvme"},
    {"lambda", "gpu_2x_h100_sxm5*", "nvlink", "", 0, "nvme"},
    {"lambda", "gpu_4x_h100_sxm5*", "nvlink", "", 0, "nvme"},
    // all boards with eight GPUs are SXM, except the V100 board above
    {"lambda", "gpu_8x_*", "nvswitch", "", 0, "nvme"},
    {"lambda", "gpu_*", "", "", 0, "nvme"},
    // The types of the simulated cloud.
    {"sim", "a100-80x8@*", "nvswitch", "roce", 400, "nvme"},
    {"sim", "h100x8@*", "nvswitch", "infiniband", 3200, "nvme"},
    {"sim", "h200x8@*", "nvswitch", "infiniband", 3200, "nvme"},
    {"sim", "b200x8@*", "nvswitch", "infiniband", 3200, "nvme"},
};

}  // namespace

// The first row that matches; narrower patterns stand first. `provider` may be "" (a driver's offers have none yet),
// since type names are unique across providers.
const KnownType* find_known_type(std::string_view provider, std::string_view type) {
  for (const KnownType& t : types) {
    if (!provider.empty() && provider != t.provider) continue;
    std::string_view name = t.type;
    const bool family = name.ends_with('*');
    if (family) name.remove_suffix(1);
    if (family ? type.starts_with(name) : type == name) return &t;
  }
  return nullptr;
}

}  // namespace rille::provider
