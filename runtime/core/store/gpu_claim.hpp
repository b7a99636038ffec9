// Assigns this computer's GPUs to machines of the provider `local`. Each GPU or MIG instance has a file named by its
// uuid in a folder that all users share: /dev/shm/rille-gpus, or $RILLE_GPU_LOCKS. A machine's agent holds a lock on
// the file (flock), which the kernel releases when the agent ends. Before the agent starts, the file's content {owner,
// until_wall_us} reserves the GPU for a limited time. Any thread, any process; these calls block briefly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/store/file.hpp"

namespace rille::store {

// how long a claim reserves a GPU, in microseconds: 2 minutes
inline constexpr std::int64_t gpu_claim_us = 120'000'000;

class GpuClaims {
 public:
  // `folder` holds the lock files; "": the default folder named above.
  explicit GpuClaims(std::string folder = "");
  const std::string& folder() const { return folder_; }

  // True: no agent holds the GPU and no claim reserves it. False also if the file cannot be opened.
  bool is_free(const std::string& uuid, std::int64_t now_wall_us) const;
  // Reserves the GPU for `owner`, a machine's directory, until its agent calls hold(). False: another machine has the
  // GPU.
  Result<bool> claim(const std::string& uuid, const std::string& owner, std::int64_t now_wall_us) const;
  // Removes the claim of `owner`, unless an agent holds the GPU.
  void drop(const std::string& uuid, const std::string& owner) const;
  // Locks the GPU for the calling agent as long as the descriptor is open. Error `capacity`: another machine has the
  // GPU.
  Result<Fd> hold(const std::string& uuid, const std::string& owner, std::int64_t now_wall_us) const;

 private:
  Result<Fd> open_file(const std::string& uuid) const;
  std::string folder_;
};

}  // namespace rille::store
