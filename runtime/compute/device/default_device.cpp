#include "runtime/compute/device/default_device.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "runtime/compute/device/cuda_kernels.hpp"
#include "runtime/compute/device/cuda_plugin.hpp"
#include "runtime/core/telemetry/nvml.hpp"

namespace rille::device {

namespace {

bool hidden() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible && (std::string_view(visible).empty() || std::string_view(visible) == "-1" ||
                     std::string_view(visible) == "NoDevFiles");  // Slurm sets "NoDevFiles" for a job without GPUs
}

std::string shown_by_nvml() {
  const auto loaded = telemetry::nvml::load();
  telemetry::nvml::Count count = 0;
  if (!loaded || (*loaded)->nvmlDeviceGetCount_v2(&count) != telemetry::nvml::success || count == 0) return "";
  telemetry::nvml::Device first = nullptr;
  char name[96] = "a GPU";
  if ((*loaded)->nvmlDeviceGetHandleByIndex_v2(0, &first) == telemetry::nvml::success && (*loaded)->nvmlDeviceGetName)
    (*loaded)->nvmlDeviceGetName(first, name, sizeof name);
  return fmt::format("{} (NVML)", name);
}

std::string shown_by_files() {
  std::error_code failed;
  for (std::filesystem::directory_iterator it("/dev", failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().filename();
    if (name.size() > 6 && name.starts_with("nvidia") && name.find_first_not_of("0123456789", 6) == name.npos)
      return it->path();
  }
  return "";
}

// Whether a driver error suggests a GPU. CUDA_ERROR_NO_DEVICE (100) and CUDA_ERROR_STUB_LIBRARY (34) do not.
bool shows_gpu(const Error& e) { return e.code.starts_with("cuda_") && e.code != "cuda_100" && e.code != "cuda_34"; }

Error unusable(const std::string& sign, const Error& why) {
  Error e = make_error(
      ErrorKind::device,
      fmt::format("this machine has a GPU{}, and it cannot be used: {}", sign.empty() ? "" : ", " + sign, why.message),
      why.hint);
  constexpr const char* processor = "RILLE_DEVICE=cpu or rille.device(\"cpu\") computes on the processor";
  if (e.hint.find("RILLE_DEVICE=cpu") == std::string::npos)
    e.hint += (e.hint.empty() ? "" : "; ") + std::string(processor);
  e.code = why.code.empty() ? "gpu_unusable" : why.code;
  return e;
}

}  // namespace

std::string sign_of_gpu() {
  if (hidden()) return "";
  const std::string shown = shown_by_nvml();
  return shown.empty() ? shown_by_files() : shown;
}

Result<std::string> default_device() {
  if (const char* named = std::getenv("RILLE_DEVICE"); named && *named) return std::string(named);
  if (hidden()) return std::string("cpu");
  const auto cards = cuda_cards();
  if (!cards) {
    const std::string sign = sign_of_gpu();
    if (sign.empty() && !shows_gpu(cards.error())) return std::string("cpu");
    return unusable(sign, cards.error());
  }
  if (cards->empty()) {
    const std::string sign = sign_of_gpu();
    if (sign.empty()) return std::string("cpu");
    return unusable(sign, make_error(ErrorKind::device, "the CUDA driver sees no GPU",
                                     "check CUDA_VISIBLE_DEVICES and the output of nvidia-smi"));
  }
  RILLE_TRY(const auto driver, cuda_driver());
  if (const auto from = kernels_from(cards->front(), driver); !from)
    return unusable(cards->front().info.name, from.error());
  return std::string("cuda:0");
}

}  // namespace rille::device
