// NVML (libnvidia-ml.so.1), found and loaded at run time. The prototypes below follow NVIDIA's documentation, so that
// building needs neither a CUDA toolkit nor a driver. The pointer to a function that an older library lacks is null.
//
// The library is loaded once per process and never unloaded. The environment variable RILLE_NVML names another library.
// Any thread.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

struct nvmlDevice_st;
struct nvmlEventSet_st;

namespace rille::telemetry::nvml {

using Return = int;
using Device = nvmlDevice_st*;
using EventSet = nvmlEventSet_st*;
using Count = unsigned int;
using Large = unsigned long long;

constexpr Return success = 0, not_supported = 3, no_permission = 4, insufficient_size = 7, timeout = 10,
                 gpu_is_lost = 15;
constexpr Large event_xid = 0x8;

struct Utilization {
  Count gpu, memory;
};
struct Memory {
  Large total, free, used;
};
struct Memory2 {
  Count version;
  Large total, reserved, free, used;
};
struct PciInfo {
  char legacy[16];
  Count domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct ProcessInfo {
  Count pid;
  Large used_bytes;  // memory that the process uses; all bits set: unknown
  Count gpu_instance, compute_instance;
};
struct EventData {
  Device device;
  Large type, data;
  Count gpu_instance, compute_instance;
};
struct FieldValue {
  Count field, scope;
  long long timestamp, latency_us;
  Count value_type;
  Return result;
  union {
    double real;
    Count number;
    unsigned long word;
    Large large;
    long long whole;
  } value;
};

// Each X(name, arguments) names one NVML function and its parameter types.
#define RILLE_NVML(X)                                                        \
  X(nvmlInit_v2, ())                                                         \
  X(nvmlSystemGetDriverVersion, (char*, Count))                              \
  X(nvmlSystemGetProcessName, (Count, char*, Count))                         \
  X(nvmlDeviceGetCount_v2, (Count*))                                         \
  X(nvmlDeviceGetHandleByIndex_v2, (Count, Device*))                         \
  X(nvmlDeviceGetHandleByUUID, (const char*, Device*))                       \
  X(nvmlDeviceGetName, (Device, char*, Count))                               \
  X(nvmlDeviceGetUUID, (Device, char*, Count))                               \
  X(nvmlDeviceGetPciInfo_v3, (Device, PciInfo*))                             \
  X(nvmlDeviceGetUtilizationRates, (Device, Utilization*))                   \
  X(nvmlDeviceGetMemoryInfo, (Device, Memory*))                              \
  X(nvmlDeviceGetMemoryInfo_v2, (Device, Memory2*))                          \
  X(nvmlDeviceGetTemperature, (Device, Count, Count*))                       \
  X(nvmlDeviceGetFieldValues, (Device, int, FieldValue*))                    \
  X(nvmlDeviceGetPowerUsage, (Device, Count*))                               \
  X(nvmlDeviceGetEnforcedPowerLimit, (Device, Count*))                       \
  X(nvmlDeviceGetTotalEnergyConsumption, (Device, Large*))                   \
  X(nvmlDeviceGetClockInfo, (Device, Count, Count*))                         \
  X(nvmlDeviceGetCurrentClocksThrottleReasons, (Device, Large*))             \
  X(nvmlDeviceGetPcieThroughput, (Device, Count, Count*))                    \
  X(nvmlDeviceGetTotalEccErrors, (Device, Count, Count, Large*))             \
  X(nvmlDeviceGetRemappedRows, (Device, Count*, Count*, Count*, Count*))     \
  X(nvmlDeviceGetComputeRunningProcesses_v3, (Device, Count*, ProcessInfo*)) \
  X(nvmlDeviceGetMigMode, (Device, Count*, Count*))                          \
  X(nvmlDeviceGetMaxMigDeviceCount, (Device, Count*))                        \
  X(nvmlDeviceGetMigDeviceHandleByIndex, (Device, Count, Device*))           \
  X(nvmlEventSetCreate, (EventSet*))                                         \
  X(nvmlDeviceRegisterEvents, (Device, Large, EventSet))                     \
  X(nvmlEventSetWait_v2, (EventSet, EventData*, Count))                      \
  X(nvmlEventSetFree, (EventSet))

struct Functions {
#define RILLE_NVML_MEMBER(name, arguments) Return(*name) arguments = nullptr;
  RILLE_NVML(RILLE_NVML_MEMBER)
#undef RILLE_NVML_MEMBER
  const char* (*nvmlErrorString)(Return) = nullptr;
};

// Error `device`: the NVML library is missing or too old, or finds no driver.
Result<const Functions*> load();
// An error such as "NVML: cannot read the processes: Insufficient Permissions".
Error failure(const Functions& f, std::string_view doing, Return code);

}  // namespace rille::telemetry::nvml
