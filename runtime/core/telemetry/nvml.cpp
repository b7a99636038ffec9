#include "runtime/core/telemetry/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace rille::telemetry::nvml {

namespace {

// Tried in order: the loader's search path, then the folders where drivers usually install the library, in case the
// loader's cache is from another system.
constexpr const char* places[] = {"libnvidia-ml.so.1",
                                  "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
                                  "/usr/lib64/libnvidia-ml.so.1",
                                  "/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.1",
                                  "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
                                  "/usr/local/nvidia/lib/libnvidia-ml.so.1",
                                  "/usr/lib/wsl/lib/libnvidia-ml.so.1",
                                  "/run/opengl-driver/lib/libnvidia-ml.so.1"};

Result<void*> open_library() {
  constexpr int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  if (const char* named = std::getenv("RILLE_NVML"); named && *named) {
    if (void* library = ::dlopen(named, flags)) return library;
    const char* said = ::dlerror();
    return make_error(ErrorKind::device,
                      fmt::format("NVML {}, named by RILLE_NVML, cannot be loaded: {}", named, said ? said : "?"),
                      "unset RILLE_NVML, or let it name an NVML library");
  }
  for (const char* place : places)
    if (void* library = ::dlopen(place, flags)) return library;
  return make_error(ErrorKind::device,
                    "NVML not found: libnvidia-ml.so.1 is neither on the loader's path nor in the NVIDIA driver's "
                    "folders",
                    "GPU telemetry (dev:telemetry, rille top) needs it; everything else works without it. Install the "
                    "NVIDIA driver; start a container with docker run --gpus all; or set RILLE_NVML to the file");
}

Result<const Functions*> load_now() {
  RILLE_TRY(void* const library, open_library());
  auto functions = std::make_unique<Functions>();
#define RILLE_NVML_LOOK(name, arguments) \
  functions->name = reinterpret_cast<decltype(functions->name)>(::dlsym(library, #name));
  RILLE_NVML(RILLE_NVML_LOOK)
#undef RILLE_NVML_LOOK
  functions->nvmlErrorString =
      reinterpret_cast<decltype(functions->nvmlErrorString)>(::dlsym(library, "nvmlErrorString"));
  if (!functions->nvmlInit_v2 || !functions->nvmlDeviceGetCount_v2 || !functions->nvmlDeviceGetHandleByIndex_v2 ||
      !functions->nvmlErrorString)
    return make_error(ErrorKind::device, "the NVML library is too old", "update the NVIDIA driver");
  if (const Return code = functions->nvmlInit_v2(); code != success)
    return failure(*functions, "start", code).with_hint("run nvidia-smi, which uses the same library");
  // never freed: the function table is used until the process ends
  return static_cast<const Functions*>(functions.release());
}

}  // namespace

Error failure(const Functions& f, std::string_view doing, Return code) {
  Error e = make_error(ErrorKind::device, fmt::format("NVML: cannot {}: {}", doing, f.nvmlErrorString(code)),
                       "run nvidia-smi, which uses the NVML library too, to see whether the GPU answers");
  e.code = fmt::format("nvml {}", code);
  if (code == gpu_is_lost) e.hint = "the GPU no longer answers on its bus: take another machine";
  return e;
}

Result<const Functions*> load() {
  static std::mutex mutex;
  static const Functions* loaded = nullptr;
  const std::lock_guard lock(mutex);
  // a failed load is tried again at the next call, because a driver may be installed later
  if (!loaded) { RILLE_TRY(loaded, load_now()); }
  return loaded;
}

}  // namespace rille::telemetry::nvml
