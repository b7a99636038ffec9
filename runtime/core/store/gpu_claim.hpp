// Which machine of the provider `local` has which GPU of this computer. A GPU, or a part of a divided one (MIG), is a
// file by its uuid in a folder that all users share: /dev/shm/rille-gpus, or RILLE_GPU_LOCKS. The agent of a machine
// holds a lock on it (flock), so it is free again when that agent ends, however it ends. Until the agent has started,
// what the file says keeps it for some time: {owner, until_wall_us}.
// Any thread, any process; these calls block for an instant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/store/file.hpp"

namespace rille::store {

inline constexpr std::int64_t gpu_claim_us = 120'000'000;  // between a claim and its agent

class GpuClaims {
 public:
  // folder: "" is the default.
  explicit GpuClaims(std::string folder = "");
  const std::string& folder() const { return folder_; }

  // Whether it is unclaimed. A lock that cannot be read counts as taken.
  bool is_free(const std::string& uuid, std::int64_t now_wall_us) const;
  // Keeps it for `owner`, a machine's directory, until its agent holds it. False: another has it.
  Result<bool> claim(const std::string& uuid, const std::string& owner, std::int64_t now_wall_us) const;
  // Gives back what `owner` has claimed and no agent holds.
  void drop(const std::string& uuid, const std::string& owner) const;
  // For as long as the descriptor lives; made for the agent. capacity: another machine has it.
  Result<Fd> hold(const std::string& uuid, const std::string& owner, std::int64_t now_wall_us) const;

 private:
  Result<Fd> open_file(const std::string& uuid) const;
  std::string folder_;
};

}  // namespace rille::store
