// Chooses the build of the kernel files for this processor, and defines what all builds share.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/call.hpp"
#include "kernels/gemm.hpp"

namespace rille::kernels {

namespace {
int detect() {
  __builtin_cpu_init();
  int level = 1;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) level = 3;
  if (level == 3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
    level = 4;
  if (const char* wish = std::getenv("RILLE_ISA")) {
    const int wanted = !std::strcmp(wish, "v1") ? 1 : !std::strcmp(wish, "v3") ? 3 : 4;
    if (wanted < level) level = wanted;
  }
#ifdef RILLE_WITHOUT_V4
  if (level == 4) level = 3;
#endif
#ifdef RILLE_WITHOUT_V3
  if (level == 3) level = 1;
#endif
  return level;
}
}  // namespace

const char* isa_levels_built() {
#if defined RILLE_WITHOUT_V3 && defined RILLE_WITHOUT_V4
  return "v1";
#elif defined RILLE_WITHOUT_V3
  return "v1, v4";
#elif defined RILLE_WITHOUT_V4
  return "v1, v3";
#else
  return "v1, v3, v4";
#endif
}

int isa_level() {
  static const int level = detect();
  return level;
}

LaneState::LaneState() : gemms_(new GemmCache) {}
LaneState::~LaneState() {
  std::free(scratch_.data);
  std::free(staging_.data);
  for (auto* p : prepared_) delete p;
  delete gemms_;
}

LaneState::Prepared::~Prepared() = default;

void* LaneState::grown(Block& block, std::size_t bytes) const {
  if (bytes > block.bytes) {
    if (std::int64_t(bytes - block.bytes) > growth_) return nullptr;
    std::free(block.data);
    block.bytes = (bytes + 4095) / 4096 * 4096;
    block.data = std::aligned_alloc(64, block.bytes);
    if (!block.data) block.bytes = 0;
  }
  return block.data;
}
void* LaneState::scratch(std::size_t bytes) { return grown(scratch_, bytes); }
void* LaneState::staging(std::size_t bytes) { return grown(staging_, bytes); }

void Call::fail(const char* format, ...) const {
  if (!error || error[0]) return;
  va_list args;
  va_start(args, format);
  std::vsnprintf(error, error_bytes, format, args);
  va_end(args);
}

}  // namespace rille::kernels
