// The kernels of a shim library by name: each registers itself here when the library is loaded (kernels/cuda/device.h).
#include <string.h>

#include "kernels/shim/abi.h"

namespace {
struct Entry {
  const char* name;
  const rille_abi::Kernel* kernel;
};
constexpr int most = 4096;
Entry entries[most];
int count;
}  // namespace

extern "C" __attribute__((visibility("hidden"))) void rille_note_kernel(const char* name,
                                                                        const rille_abi::Kernel* kernel) {
  if (count == most) __builtin_trap();
  entries[count++] = {name, kernel};
}
extern "C" __attribute__((visibility("default"))) const rille_abi::Kernel* rille_shim_kernel(const char* name) {
  for (int i = 0; i < count; ++i)
    if (strcmp(entries[i].name, name) == 0) return entries[i].kernel;
  return nullptr;
}
