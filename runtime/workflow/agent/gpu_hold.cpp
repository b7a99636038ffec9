#include "runtime/workflow/agent/gpu_hold.hpp"

#include "runtime/core/store/gpu_claim.hpp"

namespace rille::agent {

Result<> GpuHold::take(const Value& machine, const std::string& directory, std::int64_t now_wall_us) {
  const Value::Array* const gpus = machine["gpus"].as_array();
  if (!gpus) return success();
  const store::GpuClaims claims;
  std::string visible;
  for (const Value& gpu : *gpus) {
    if (!gpu.as_string())
      return make_error(ErrorKind::invalid, "machine.json: gpus must be a list of GPU uuids",
                        "that file in the instance's folder is damaged: release the instance, and rent again");
    RILLE_TRY(store::Fd held, claims.hold(*gpu.as_string(), directory, now_wall_us));
    held_.push_back(std::move(held));
    visible += (visible.empty() ? "" : ",") + *gpu.as_string();
  }
  visible_ = std::move(visible);
  return success();
}

std::optional<std::int64_t> GpuHold::count() const {
  if (!visible_) return std::nullopt;
  return static_cast<std::int64_t>(held_.size());
}

}  // namespace rille::agent
