// Assigns this computer's GPUs to machines of the provider `local`. Each GPU or MIG instance is a file named by its
// uuid in a folder shared by all users: /dev/shm/rille-gpus, or RILLE_GPU_LOCKS. The agent of a machine holds a lock
// on the file (flock), which the kernel releases when the agent ends. Until the agent has started, the file's
// content reserves the GPU for a limited time: {owner, until_wall_us}. Any thread, any process; these calls block
// briefly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/store/file.hpp"

namespace rille::store {

inline constexpr std::int64_t gpu_claim_us = 120'000'000;  // from a claim to the start of its agent

class GpuClaims {
 public:
  // folder: "" means the default.
  explicit GpuClaims(std::string folder = "");
  const std::string& folder() const { return folder_; }

  // Whether the GPU is unclaimed. An unreadable lock counts as taken.
  bool is_free(const std::string& uuid, std::int64_t now_wall_us) const;
  // Reserves the GPU for `owner`, a machine's directory, until its agent holds it. False: another machine has it.
  Result<bool> claim(const std::string& uuid, const std::string& owner, std::int64_t now_wall_us) const;
  // Releases a claim of `owner` that no agent holds.
  void drop(const std::string& uuid, const std::string& owner) const;
  // Locks the GPU for the agent while the descriptor lives. capacity: another machine has it.
  Result<Fd> hold(const std::string& uuid, const std::string& owner, std::int64_t now_wall_us) const;

 private:
  Result<Fd> open_file(const std::string& uuid) const;
  std::string folder_;
};

}  // namespace rille::store
