// A CUDA device's place among others, by NCCL behind the plug-in. Calls are given to the device's stream in the order
// of its lane, by all ranks in the same order, and run when the stream comes to them.
//
// Errors: device (no NCCL, the device is lost), network (NCCL's own: another rank is gone). Threads: run() on the
// device's lane, the others any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/compute/device/cuda.hpp"

namespace rille::device {

class CudaRanks {
 public:
  // Of a group to be, for all its ranks: 128 bytes.
  static Result<std::string> new_id();
  // Begins to join; the others have when it is settled.
  static Result<std::unique_ptr<CudaRanks>> join(std::shared_ptr<CudaDevice> device, const std::string& id, int rank,
                                                 int world);
  ~CudaRanks();
  CudaRanks(const CudaRanks&) = delete;
  CudaRanks& operator=(const CudaRanks&) = delete;

  const std::shared_ptr<CudaDevice>& device() const { return device_; }
  Result<> run(const std::vector<cuda::Collective>& calls);  // together; begins to give them
  // Or what is wrong. false: NCCL is still busy with joining, or with what run() gave; ask it nothing else then.
  Result<bool> settled() const;
  // What waits on the device ends without a result. Every read there says why, until a new group is joined; with ""
  // none does, for nothing was lost.
  void give_up(const std::string& why);

 private:
  CudaRanks(std::shared_ptr<CudaDevice> device, cuda::Ranks* ranks) : device_(std::move(device)), ranks_(ranks) {}
  std::shared_ptr<CudaDevice> device_;
  cuda::Ranks* ranks_;
};

}  // namespace rille::device
