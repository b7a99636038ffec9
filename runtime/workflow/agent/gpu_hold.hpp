// GpuHold: the GPUs that machine.json assigns to an agent (the list "gpus" of UUIDs). They are locked while the agent
// lives, and named to the agent's workers in CUDA_VISIBLE_DEVICES. An empty list hides all GPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::agent {

class GpuHold {
 public:
  // Locks the GPUs that `machine` (machine.json) assigns. Fails with `capacity` if another agent has locked one.
  Result<> take(const Value& machine, const std::string& directory, std::int64_t now_wall_us);
  // The number of assigned GPUs; nullopt: machine.json has no list of GPUs.
  std::optional<std::int64_t> count() const;
  const std::optional<std::string>& visible() const { return visible_; }  // the workers' CUDA_VISIBLE_DEVICES, if set

 private:
  std::optional<std::string> visible_;
  std::vector<store::Fd> held_;
};

}  // namespace rille::agent
