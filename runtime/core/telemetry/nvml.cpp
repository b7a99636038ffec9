#include "runtime/core/telemetry/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace rille::telemetry::nvml {

namespace {

// The loader's own search first; then where drivers lie when the loader's cache is another system's.
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
                      "unset RILLE_NVML, or name a library in it");
  }
  for (const char* place : places)
    if (void* library = ::dlopen(place, flags)) return library;
  return make_error(ErrorKind::device,
                    "NVML is not found: libnvidia-ml.so.1 is neither in the loader's folders nor where NVIDIA's driver "
                    "puts it",
                    "without it there is no GPU telemetry (dev:telemetry, rille top); all else goes on. It comes with "
                    "the driver: install that; start a container with docker run --gpus all; RILLE_NVML names a file");
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
    return failure(*functions, "start", code).with_hint("look at nvidia-smi: it asks the same library");
  return static_cast<const Functions*>(functions.release());  // as the library, for as long as the process
}

}  // namespace

Error failure(const Functions& f, std::string_view doing, Return code) {
  Error e = make_error(ErrorKind::device, fmt::format("NVML: cannot {}: {}", doing, f.nvmlErrorString(code)));
  e.code = fmt::format("nvml {}", code);
  if (code == gpu_is_lost) e.hint = "the GPU has fallen off its bus: take another machine";
  return e;
}

Result<const Functions*> load() {
  static std::mutex mutex;
  static const Functions* loaded = nullptr;
  const std::lock_guard lock(mutex);
  if (!loaded) { RILLE_TRY(loaded, load_now()); }  // a driver may be installed later
  return loaded;
}

}  // namespace rille::telemetry::nvml
