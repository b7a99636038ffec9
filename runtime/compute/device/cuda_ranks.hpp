// A CUDA device's membership in an NCCL group, through the plug-in. Collective calls are queued on the device's stream
// and run when the stream reaches them. All ranks must queue them in the same order.
//
// Errors: device (no NCCL, or the device is lost), network (NCCL reports one: another rank is gone). Threads: run() on
// the device's lane, other functions on any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/compute/device/cuda.hpp"

namespace rille::device {

class CudaRanks {
 public:
  // device: there is no NCCL on this machine.
  static Result<> find_nccl();
  // The id of a new group, for all its ranks: 128 bytes. NCCL starts a thread and a listener for each id, and they end
  // only when all ranks have joined: one rank makes the id.
  static Result<std::string> new_id();
  // Starts joining; the group is complete when settled() returns true.
  static Result<std::unique_ptr<CudaRanks>> join(std::shared_ptr<CudaDevice> device, const std::string& id, int rank,
                                                 int world);
  ~CudaRanks();
  CudaRanks(const CudaRanks&) = delete;
  CudaRanks& operator=(const CudaRanks&) = delete;

  const std::shared_ptr<CudaDevice>& device() const { return device_; }
  Result<> run(const std::vector<cuda::Collective>& calls);  // queues all `calls` as one NCCL group; does not wait
  // false: NCCL is still busy with join() or run(); call no other function until true. An error: NCCL's.
  Result<bool> settled() const;
  // Aborts collective calls that have not finished. Every read on the device then fails with `why` until a new group is
  // joined; with an empty `why` reads still succeed.
  void give_up(const std::string& why);

 private:
  CudaRanks(std::shared_ptr<CudaDevice> device, cuda::Ranks* ranks) : device_(std::move(device)), ranks_(ranks) {}
  std::shared_ptr<CudaDevice> device_;
  cuda::Ranks* ranks_;
};

}  // namespace rille::device
