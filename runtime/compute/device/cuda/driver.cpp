#include "runtime/compute/device/cuda/driver.hpp"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/core/base/error.hpp"

namespace rille::device::cuda {

namespace {

// First the loader's own search, then the usual places of drivers: in a bundle or a container that mounts the driver,
// the loader's cache may be that of another system.
constexpr const char* places[] = {"libcuda.so.1",
                                  "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
                                  "/usr/lib64/libcuda.so.1",
                                  "/usr/lib/libcuda.so.1",
                                  "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1",
                                  "/usr/local/nvidia/lib64/libcuda.so.1",
                                  "/usr/local/nvidia/lib/libcuda.so.1",
                                  "/usr/local/cuda/compat/libcuda.so.1",
                                  "/usr/lib/wsl/lib/libcuda.so.1",
                                  "/run/opengl-driver/lib/libcuda.so.1"};
constexpr int oldest = 12000;

void* open_library(char* path, std::size_t bytes, Failure& why) {
  const auto load = [&](const char* place) {
    void* const library = ::dlopen(place, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library) std::snprintf(path, bytes, "%s", place);
    return library;
  };
  if (const char* named = std::getenv("RILLE_CUDA_DRIVER"); named && *named) {
    if (void* library = load(named)) return library;
    const char* said = ::dlerror();
    refuse(why, int(ErrorKind::device), "unset RILLE_CUDA_DRIVER, or name a driver library in it",
           "the CUDA driver %s, named by RILLE_CUDA_DRIVER, cannot be loaded: %s", named, said ? said : "?");
    return nullptr;
  }
  for (const char* place : places) {
    if (void* library = load(place)) return library;
  }
  refuse(why, int(ErrorKind::device),
         "install NVIDIA's driver (nvidia-smi shows it); start a container with its devices: docker run --gpus all",
         "this machine has no CUDA driver: libcuda.so.1 is not found");
  return nullptr;
}

struct Advice {
  CUresult code;
  const char* hint;
};
constexpr int device_kind = int(ErrorKind::device);
// The hint for errors after which the GPU is unusable. The driver does not tell which kernel caused such an error.
#define RILLE_LOST                                                                                      \
  "this process can no longer use the device: start it again, and resume from the last checkpoint, on " \
  "another device if need be: RILLE_DEVICE=cpu"
constexpr const char* restart = RILLE_LOST "; dmesg says more in its lines of NVRM: Xid";
constexpr const char* culprit = RILLE_LOST
    ". If your own kernel caused it, dev:kernel(.., { checked = true }) on the CPU finds the place; "
    "CUDA_LAUNCH_BLOCKING=1 names the launch; dmesg has details (NVRM: Xid)";
constexpr Advice advice[] = {
    {cu::out_of_memory,
     "use a smaller batch, or free tensors; other processes may hold memory of this device: nvidia-smi"},
    {cu::stub_library,
     "this libcuda is the CUDA toolkit's stub, for linking only: let LD_LIBRARY_PATH name the driver's libcuda first"},
    {cu::device_unavailable, "another process holds the GPU in exclusive mode: nvidia-smi -q -d COMPUTE"},
    {cu::no_device, "no GPU is visible: look at nvidia-smi and at CUDA_VISIBLE_DEVICES"},
    {cu::invalid_image, "the kernels were made by a newer CUDA than this driver knows: update the driver"},
    {cu::no_binary_for_gpu,
     "the kernels are for sm_75 (Turing) and newer; a GPU that is newer than this build needs a newer driver"},
    {cu::unsupported_ptx, "the kernels were made by a newer CUDA than this driver knows: update the driver"},
    {cu::illegal_address, culprit},
    {cu::misaligned_address, culprit},
    {cu::invalid_address_space, culprit},
    {cu::illegal_instruction, culprit},
    {cu::invalid_pc, culprit},
    {cu::hardware_stack, culprit},
    {cu::assert, culprit},
    {cu::launch_failed, culprit},
    {cu::cooperative_too_large,
     "all blocks of a cooperative launch must run at once: use fewer blocks, fewer threads in each, or less shared "
     "memory"},
    {cu::ecc_uncorrectable,
     "the GPU's memory is faulty (nvidia-smi -q -d ECC): take another machine, and resume from "
     "the last checkpoint"},
    {cu::contained,
     "the GPU's hardware has a fault (nvidia-smi -q; dmesg: NVRM: Xid): take another machine, and "
     "resume from the last checkpoint"},
    {cu::tensor_memory_leak, culprit},
    {cu::nvlink_uncorrectable,
     "an NVLink connection is faulty: take another machine, and resume from the last checkpoint"},
    {cu::driver_mismatch,
     "the kernel module and libcuda are of different versions: restart the machine after a driver update"},
    {cu::compat_not_supported, "the container's compatibility libcuda is not for this GPU: update the host's driver"},
    {cu::system_not_ready, "the fabric manager is not running: systemctl start nvidia-fabricmanager"},
    {cu::newer_driver, "update the driver"},
    {cu::unknown, RILLE_LOST "; look at dmesg for lines of NVRM; the module nvidia_uvm may have to be loaded again"}};
#undef RILLE_LOST

}  // namespace

bool refuse(Failure& f, int kind, const char* hint, const char* format, ...) {
  f.kind = kind;
  f.code = 0;
  va_list args;
  va_start(args, format);
  std::vsnprintf(f.message, sizeof f.message, format, args);
  va_end(args);
  std::snprintf(f.hint, sizeof f.hint, "%s", hint);
  return false;
}

bool Driver::ok(CUresult result, const char* doing, Failure& f) const {
  if (result == cu::success) return true;
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName) cuGetErrorName(result, &name);
  if (cuGetErrorString) cuGetErrorString(result, &text);
  const int kind = result == cu::out_of_memory ? int(ErrorKind::memory) : device_kind;
  const char* hint = is_loss(result) ? restart : "";
  for (const auto& a : advice)
    if (a.code == result) hint = a.hint;
  refuse(f, kind, hint, "%s: the CUDA driver says %s (%d): %s", doing, name ? name : "an unknown error", result,
         text ? text : "");
  f.code = result;
  return false;
}

bool Driver::load(Failure& why) {
  void* const library = open_library(path, sizeof path, why);
  if (!library) return false;
  const char* missing = nullptr;
#define RILLE_FIND(name, symbol, parameters)                         \
  name = reinterpret_cast<decltype(name)>(::dlsym(library, symbol)); \
  if (!name && !missing) missing = symbol;
  RILLE_CUDA_DRIVER(RILLE_FIND)
#undef RILLE_FIND
  if (cuDriverGetVersion) cuDriverGetVersion(&version);
  if (missing || version < oldest) {
    refuse(why, device_kind, "update the driver: R525 or newer; tensors run on the CPU meanwhile: RILLE_DEVICE=cpu",
           "the CUDA driver %s is too old: it supports CUDA %d.%d%s%s, and Rille needs %d.0", path, version / 1000,
           version % 1000 / 10, missing ? ", has no " : "", missing ? missing : "", oldest / 1000);
    why.code = cu::insufficient_driver;
    return false;
  }
  return ok(cuInit(0), "starting CUDA", why);
}

}  // namespace rille::device::cuda
