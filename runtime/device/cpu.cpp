#include "runtime/device/cpu.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "kernels/call.hpp"

namespace rille::device {

std::shared_ptr<CpuDevice> CpuDevice::create(std::shared_ptr<Lane> lane) {
  return std::shared_ptr<CpuDevice>(new CpuDevice(std::move(lane)));
}

CpuDevice::~CpuDevice() { release_all(); }

std::string CpuDevice::description() const {
  std::string model = "x86-64 CPU";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      if (const auto colon = line.find(": "); colon != std::string::npos) model = line.substr(colon + 2);
      break;
    }
  }
  const int level = kernels::isa_level();
  return fmt::format("{}, {}, {} thread{}", model, level == 4 ? "AVX-512" : level == 3 ? "AVX2" : "SSE2", threads(),
                     threads() == 1 ? "" : "s");
}

Result<> CpuDevice::upload(const Buffer& to, const void* from, std::size_t bytes) {
  if (bytes) std::memcpy(to.data(), from, bytes);
  return success();
}

Result<> CpuDevice::download(void* to, const void* from, std::size_t bytes) {
  if (bytes) std::memcpy(to, from, bytes);
  return success();
}

Result<> CpuDevice::clear(void* at, std::size_t bytes) {
  if (bytes) std::memset(at, 0, bytes);
  return success();
}

void* CpuDevice::system_allocate(std::size_t bytes) { return std::aligned_alloc(64, bytes); }
void CpuDevice::system_free(void* data, std::size_t) { std::free(data); }

}  // namespace rille::device
