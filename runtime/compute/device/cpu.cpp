#include "runtime/compute/device/cpu.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

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
  return fmt::format("{}, {}, {} thread{}", model,
                     level == 4   ? "AVX-512"
                     : level == 3 ? "AVX2"
                                  : "SSE2",
                     threads(), threads() == 1 ? "" : "s");
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

namespace {

// Buffers from 1 MiB are mapped, so that freeing them returns the memory to the system; memory freed in the middle of
// the heap would stay with the process. With AddressSanitizer nothing is mapped: it checks heap memory only.
constexpr std::size_t mapped_from_bytes = 1 << 20;
#ifdef __SANITIZE_ADDRESS__
constexpr bool maps = false;
#else
constexpr bool maps = true;
#endif

}  // namespace

void* CpuDevice::system_allocate(std::size_t bytes) {
  if (!maps || bytes < mapped_from_bytes) return std::aligned_alloc(64, bytes);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  (void)::madvise(data, bytes, MADV_HUGEPAGE);  // only a hint; an error is ignored
  return data;
}

void CpuDevice::system_free(void* data, std::size_t bytes) {
  if (!maps || bytes < mapped_from_bytes) std::free(data);
  else ::munmap(data, bytes);
}

}  // namespace rille::device
