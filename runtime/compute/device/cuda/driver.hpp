// The CUDA driver (libcuda.so.1), loaded at run time. Its prototypes are declared here as in its documentation for CUDA
// 12 and 13, so that the build needs neither a toolkit nor a driver.
//
// The driver is loaded once and never unloaded. Any thread; the plug-in's `start` calls load() under a lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/compute/device/cuda/plugin.hpp"

namespace rille::device::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
struct CUuuid {
  char bytes[16];
};

namespace cu {
constexpr CUresult success = 0, invalid_value = 1, out_of_memory = 2, stub_library = 34, insufficient_driver = 35,
                   newer_driver = 36, device_unavailable = 46, no_device = 100, invalid_device = 101,
                   invalid_image = 200, no_binary_for_gpu = 209, ecc_uncorrectable = 214, nvlink_uncorrectable = 220,
                   contained = 226, unsupported_ptx = 222, not_found = 500, not_ready = 600, illegal_address = 700,
                   out_of_resources = 701, launch_timeout = 702, context_destroyed = 709, assert = 710,
                   hardware_stack = 714, illegal_instruction = 715, misaligned_address = 716,
                   invalid_address_space = 717, invalid_pc = 718, launch_failed = 719, cooperative_too_large = 720,
                   tensor_memory_leak = 721, system_not_ready = 802, driver_mismatch = 803, compat_not_supported = 804,
                   capture_unsupported = 900, capture_invalidated = 901, unknown = 999;
constexpr unsigned stream_non_blocking = 1, event_blocking = 1, event_no_timing = 2, host_portable = 1;
constexpr int multiprocessors = 16, l2_cache = 38, capability_major = 75, capability_minor = 76,
              shared_per_block_optin = 97;                                 // CUdevice_attribute
constexpr int threads_max = 0, static_shared = 1, dynamic_shared_max = 8;  // CUfunction_attribute
constexpr int capture_thread_local = 1;
}  // namespace cu

// X(name of the member of Driver, name in the library, parameters)
#define RILLE_CUDA_DRIVER(X)                                                                                       \
  X(cuInit, "cuInit", (unsigned flags))                                                                            \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int* version))                                                      \
  X(cuGetErrorName, "cuGetErrorName", (CUresult, const char** name))                                               \
  X(cuGetErrorString, "cuGetErrorString", (CUresult, const char** text))                                           \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int* count))                                                            \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice*, int ordinal))                                                          \
  X(cuDeviceGetName, "cuDeviceGetName", (char* name, int bytes, CUdevice))                                         \
  X(cuDeviceGetUuid, "cuDeviceGetUuid_v2", (CUuuid*, CUdevice))                                                    \
  X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char* bus, int bytes, CUdevice))                                  \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (std::size_t * bytes, CUdevice))                                      \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int* value, int attribute, CUdevice))                           \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext*, CUdevice))                                  \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                                         \
  X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext))                                                          \
  X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext*))                                                           \
  X(cuMemGetInfo, "cuMemGetInfo_v2", (std::size_t * free, std::size_t * total))                                    \
  X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr*, std::size_t bytes))                                                \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr))                                                                      \
  X(cuMemHostAlloc, "cuMemHostAlloc", (void**, std::size_t bytes, unsigned flags))                                 \
  X(cuMemFreeHost, "cuMemFreeHost", (void*))                                                                       \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void*, std::size_t bytes, CUstream))            \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void*, CUdeviceptr, std::size_t bytes, CUstream))                  \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream))    \
  X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int* can, CUdevice, CUdevice peer))                           \
  X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", (CUcontext peer, unsigned flags))                              \
  X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync",                                                                        \
    (CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, std::size_t bytes, CUstream))              \
  X(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr, unsigned char, std::size_t count, CUstream))                 \
  X(cuMemsetD32Async, "cuMemsetD32Async", (CUdeviceptr, unsigned, std::size_t count, CUstream))                    \
  X(cuStreamCreate, "cuStreamCreate", (CUstream*, unsigned flags))                                                 \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream))                                                             \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream))                                                        \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream, CUevent, unsigned flags))                                   \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream, int mode))                                         \
  X(cuStreamEndCapture, "cuStreamEndCapture", (CUstream, CUgraph*))                                                \
  X(cuEventCreate, "cuEventCreate", (CUevent*, unsigned flags))                                                    \
  X(cuEventDestroy, "cuEventDestroy_v2", (CUevent))                                                                \
  X(cuEventRecord, "cuEventRecord", (CUevent, CUstream))                                                           \
  X(cuEventQuery, "cuEventQuery", (CUevent))                                                                       \
  X(cuEventSynchronize, "cuEventSynchronize", (CUevent))                                                           \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float* ms, CUevent from, CUevent to))                               \
  X(cuModuleLoadData, "cuModuleLoadData", (CUmodule*, const void* image))                                          \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule))                                                                  \
  X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction*, CUmodule, const char* name))                         \
  X(cuModuleGetGlobal, "cuModuleGetGlobal_v2", (CUdeviceptr*, std::size_t * bytes, CUmodule, const char* name))    \
  X(cuFuncGetAttribute, "cuFuncGetAttribute", (int* value, int attribute, CUfunction))                             \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction, int attribute, int value))                              \
  X(cuOccupancyMaxPotentialBlockSize, "cuOccupancyMaxPotentialBlockSize",                                          \
    (int* grid, int* block, CUfunction, std::size_t (*shared_of)(int block), std::size_t shared, int block_limit)) \
  X(cuLaunchKernel, "cuLaunchKernel",                                                                              \
    (CUfunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,            \
     unsigned block_z, unsigned shared_bytes, CUstream, void** arguments, void** extra))                           \
  X(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel",                                                        \
    (CUfunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,            \
     unsigned block_z, unsigned shared_bytes, CUstream, void** arguments))                                         \
  X(cuGraphInstantiate, "cuGraphInstantiateWithFlags", (CUgraphExec*, CUgraph, unsigned long long flags))          \
  X(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec, CUstream))                                                       \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec))                                                       \
  X(cuGraphDestroy, "cuGraphDestroy", (CUgraph))

struct Driver {
#define RILLE_MEMBER(name, symbol, parameters) CUresult(*name) parameters = nullptr;
  RILLE_CUDA_DRIVER(RILLE_MEMBER)
#undef RILLE_MEMBER
  int version = 0;  // the CUDA version that the driver supports: 13000
  char path[512] = {};

  // false: the driver is missing, too old, or fails to start. For tests $RILLE_CUDA_DRIVER names another library.
  bool load(Failure& why);
  // False on an error: `f` then has the driver's message, the action `doing`, and a hint if there is one.
  bool ok(CUresult result, const char* doing, Failure& f) const;
};

// Whether the error makes the GPU unusable for the rest of this process.
inline bool is_loss(CUresult r) {
  switch (r) {
    case cu::ecc_uncorrectable:
    case cu::nvlink_uncorrectable:
    case cu::illegal_address:
    case cu::launch_timeout:
    case cu::context_destroyed:
    case cu::assert:
    case cu::hardware_stack:
    case cu::illegal_instruction:
    case cu::misaligned_address:
    case cu::invalid_address_space:
    case cu::invalid_pc:
    case cu::launch_failed:
    case cu::contained:
    case cu::tensor_memory_leak:
    case cu::unknown: return true;
    default: return false;
  }
}

// Whether the error says that a code image needs a newer driver or another GPU.
inline bool is_misfit(CUresult r) {
  return r == cu::invalid_image || r == cu::no_binary_for_gpu || r == cu::unsupported_ptx;
}

inline CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

bool refuse(Failure& f, int kind, const char* hint, const char* format, ...) __attribute__((format(printf, 4, 5)));

}  // namespace rille::device::cuda
