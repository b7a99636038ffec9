#include "runtime/compute/device/cuda_ranks.hpp"

#include "runtime/core/telemetry/nvml.hpp"

namespace rille::device {

namespace {
// NCCL loads libnvidia-ml by its name alone. Loading it first lets NCCL find it, whatever its folder.
void load_for_nccl() { (void)telemetry::nvml::load(); }
}  // namespace

Result<> CudaRanks::find_nccl() {
  RILLE_TRY(const auto* table, cuda_plugin());
  load_for_nccl();
  cuda::Failure why;
  if (!table->unique_id(nullptr, &why)) return cuda_error(why);
  return success();
}

Result<std::string> CudaRanks::new_id() {
  RILLE_TRY(const auto* table, cuda_plugin());
  load_for_nccl();
  std::string id(128, '\0');
  cuda::Failure why;
  if (!table->unique_id(id.data(), &why)) return cuda_error(why);
  return id;
}

Result<std::unique_ptr<CudaRanks>> CudaRanks::join(std::shared_ptr<CudaDevice> device, const std::string& id, int rank,
                                                   int world) {
  cuda::Failure why;
  if (id.size() != 128)
    return make_error(ErrorKind::integrity, "rank 0 sent no valid NCCL id",
                      "install one version of Rille on all machines, then start all ranks again");
  load_for_nccl();
  auto* const ranks = device->table_->join(device->handle_, id.data(), rank, world, &why);
  if (!ranks) return cuda_error(why);
  return std::unique_ptr<CudaRanks>(new CudaRanks(std::move(device), ranks));
}

CudaRanks::~CudaRanks() { device_->table_->leave(device_->handle_, ranks_); }

Result<> CudaRanks::run(const std::vector<cuda::Collective>& calls) {
  cuda::Failure why;
  if (device_->table_->exchange(device_->handle_, ranks_, calls.data(), int(calls.size()), &why)) return success();
  return cuda_error(why);
}

Result<bool> CudaRanks::settled() const {
  cuda::Failure why;
  if (device_->table_->ranks_alive(device_->handle_, ranks_, &why)) return why.code == 0;
  return cuda_error(why);
}

void CudaRanks::give_up(const std::string& why) { device_->table_->give_up(device_->handle_, ranks_, why.c_str()); }

}  // namespace rille::device
