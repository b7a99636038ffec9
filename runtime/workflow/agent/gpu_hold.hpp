// The GPUs of the machine that an agent lives on, where machine.json names them ("gpus", uuids): held for as long as
// the agent lives, and told to its workers by CUDA_VISIBLE_DEVICES. An empty list hides them all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::agent {

class GpuHold {
 public:
  // capacity: another machine has one of them by now.
  Result<> take(const Value& machine, const std::string& directory, std::int64_t now_wall_us);
  // Null: the machine does not say which are its own.
  std::optional<std::int64_t> count() const;
  const std::optional<std::string>& visible() const { return visible_; }  // CUDA_VISIBLE_DEVICES of its workers

 private:
  std::optional<std::string> visible_;
  std::vector<store::Fd> held_;
};

}  // namespace rille::agent
