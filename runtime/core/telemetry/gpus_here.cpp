#include "runtime/core/telemetry/gpus_here.hpp"

#include "runtime/core/telemetry/nvml.hpp"

namespace rille::telemetry {

namespace {

using nvml::Count;

// Older NVML libraries lack nvmlDeviceGetMemoryInfo_v2; then the first version of the memory struct is used.
std::int64_t memory_of(const nvml::Functions& f, nvml::Device device) {
  nvml::Memory2 now{};
  now.version = Count(sizeof now) | 2u << 24;
  if (f.nvmlDeviceGetMemoryInfo_v2 && f.nvmlDeviceGetMemoryInfo_v2(device, &now) == nvml::success)
    return std::int64_t(now.total);
  nvml::Memory before{};
  if (f.nvmlDeviceGetMemoryInfo && f.nvmlDeviceGetMemoryInfo(device, &before) == nvml::success)
    return std::int64_t(before.total);
  return 0;
}

void add(std::vector<GpuHere>& out, const nvml::Functions& f, nvml::Device device) {
  char uuid[96] = {}, name[128] = {};
  if (!f.nvmlDeviceGetUUID || f.nvmlDeviceGetUUID(device, uuid, sizeof uuid) != nvml::success) return;
  if (f.nvmlDeviceGetName) (void)f.nvmlDeviceGetName(device, name, sizeof name);
  out.push_back({uuid, *name ? name : "GPU", memory_of(f, device)});
}

bool is_divided(const nvml::Functions& f, nvml::Device device) {
  Count now = 0, later = 0;
  return f.nvmlDeviceGetMigMode && f.nvmlDeviceGetMaxMigDeviceCount && f.nvmlDeviceGetMigDeviceHandleByIndex &&
         f.nvmlDeviceGetMigMode(device, &now, &later) == nvml::success && now;
}

}  // namespace

Result<std::vector<GpuHere>> gpus_here() {
  RILLE_TRY(const nvml::Functions* const f, nvml::load());
  Count count = 0;
  if (const auto failed = f->nvmlDeviceGetCount_v2(&count); failed != nvml::success)
    return nvml::failure(*f, "count the GPUs", failed);
  std::vector<GpuHere> out;
  for (Count i = 0; i < count; ++i) {
    nvml::Device card = nullptr, part = nullptr;
    if (f->nvmlDeviceGetHandleByIndex_v2(i, &card) != nvml::success) continue;
    Count most = 0;
    if (!is_divided(*f, card)) add(out, *f, card);
    else if (f->nvmlDeviceGetMaxMigDeviceCount(card, &most) == nvml::success)
      for (Count k = 0; k < most; ++k)
        if (f->nvmlDeviceGetMigDeviceHandleByIndex(card, k, &part) == nvml::success) add(out, *f, part);
  }
  return out;
}

}  // namespace rille::telemetry
