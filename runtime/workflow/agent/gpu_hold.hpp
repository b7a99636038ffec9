// The GPUs that machine.json assigns to an agent ("gpus", UUIDs): locked while the agent lives, and passed to its
// workers in CUDA_VISIBLE_DEVICES. An empty list hides all GPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::agent {

class GpuHold {
 public:
  // capacity: another local machine holds one of them.
  Result<> take(const Value& machine, const std::string& directory, std::int64_t now_wall_us);
  // Nothing: machine.json assigns none.
  std::optional<std::int64_t> count() const;
  const std::optional<std::string>& visible() const { return visible_; }  // CUDA_VISIBLE_DEVICES of the workers

 private:
  std::optional<std::string> visible_;
  std::vector<store::Fd> held_;
};

}  // namespace rille::agent
