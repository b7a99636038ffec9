// A stand-in for NVML: two GPUs, of which the second reports little. RILLE_STANDIN_NVML may contain: "lost" (the second
// has fallen off the bus), "gone" (the first has, before the first query), "xid" (the first had a critical error),
// "mig" (it is partitioned), "nodriver" (there is no driver).
#include "runtime/core/telemetry/nvml.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace rille::telemetry::nvml;

struct nvmlDevice_st {
  int number;
};
struct nvmlEventSet_st {
  int left;
};

namespace {

nvmlDevice_st cards[2] = {{0}, {1}}, part{2};
bool asked(const char* word) {
  const char* all = std::getenv("RILLE_STANDIN_NVML");
  return all && std::strstr(all, word);
}
Return copy(const char* text, char* to, Count size) { return std::snprintf(to, size, "%s", text), success; }
// The second GPU reports only its name and its temperature.
Return told(Device d, bool basic = false) {
  if (d == &cards[1] && asked("lost")) return gpu_is_lost;
  return d == &cards[1] && !basic ? not_supported : success;
}
template <class T>
Return give(Device d, T* to, T value, bool basic = false) {
  const Return r = told(d, basic);
  if (r == success) *to = value;
  return r;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
const char* nvmlErrorString(Return r) {
  return r == 9 ? "Driver Not Loaded" : r == gpu_is_lost ? "GPU is lost" : "Not Found";
}
Return nvmlInit_v2() { return asked("nodriver") ? 9 : success; }
Return nvmlSystemGetDriverVersion(char* to, Count n) { return copy("580.1", to, n); }
Return nvmlSystemGetProcessName(Count, char* to, Count n) { return copy("/usr/bin/rille", to, n); }
Return nvmlDeviceGetCount_v2(Count* n) { return *n = 2, success; }
Return nvmlDeviceGetHandleByIndex_v2(Count i, Device* d) {
  if (i == 0 && asked("gone")) return gpu_is_lost;
  return *d = &cards[i], success;
}
Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* d) {
  *d = !std::strcmp(uuid, "GPU-a") ? &cards[0] : !std::strcmp(uuid, "MIG-b") ? &part : nullptr;
  return *d ? success : 6;
}
Return nvmlDeviceGetName(Device d, char* to, Count n) {
  return copy(d == &part ? "NVIDIA H200 MIG 1g.18gb" : "NVIDIA H200", to, n);
}
Return nvmlDeviceGetUUID(Device d, char* to, Count n) {
  return copy(d == &cards[0] ? "GPU-a" : d == &part ? "MIG-b" : "GPU-c", to, n);
}
Return nvmlDeviceGetPciInfo_v3(Device d, PciInfo* pci) {
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", d->number + 1);
  return success;
}
Return nvmlDeviceGetUtilizationRates(Device d, Utilization* u) {
  return d == &part ? not_supported : give(d, u, {97, 41});
}
Return nvmlDeviceGetMemoryInfo_v2(Device d, Memory2* m) {
  if (m->version != (Count(sizeof *m) | 2u << 24)) return 2;
  return give(d, m, {m->version, 150'000'000'000, 1, 2, 88'000'000'000});
}
Return nvmlDeviceGetMemoryInfo(Device d, Memory* m) { return give(d, m, {24'000'000'000, 1, 3'000'000'000}, true); }
Return nvmlDeviceGetTemperature(Device d, Count, Count* t) { return give(d, t, Count(58), true); }
Return nvmlDeviceGetFieldValues(Device d, int, FieldValue* f) {
  f->result = told(d);
  f->value.number = 66;
  return success;
}
Return nvmlDeviceGetPowerUsage(Device d, Count* mw) { return give(d, mw, Count(412'500)); }
Return nvmlDeviceGetEnforcedPowerLimit(Device d, Count* mw) { return give(d, mw, Count(700'000)); }
Return nvmlDeviceGetTotalEnergyConsumption(Device d, Large* mj) { return give(d, mj, Large(5'000'000)); }
Return nvmlDeviceGetClockInfo(Device d, Count which, Count* mhz) {
  return give(d, mhz, Count(which == 1 ? 1980 : 3201));
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device d, Large* bits) { return give(d, bits, Large(0x24)); }
Return nvmlDeviceGetPcieThroughput(Device d, Count which, Count* kb) { return give(d, kb, Count(which ? 200 : 100)); }
Return nvmlDeviceGetTotalEccErrors(Device d, Count type, Count, Large* n) { return give(d, n, Large(type ? 0 : 7)); }
Return nvmlDeviceGetComputeRunningProcesses_v3(Device d, Count* n, ProcessInfo* list) {
  if (told(d) != success) return not_supported;
  const Count have = 70;  // more than fit into the first buffer
  if (*n < have) return *n = have, insufficient_size;
  *n = have;
  for (Count i = 0; i < have; ++i) list[i] = {100 + i, i ? Large(1) << 20 : ~Large(0), 0, 0};
  return success;
}
Return nvmlDeviceGetMigMode(Device d, Count* now, Count* later) {
  if (d == &part) return not_supported;
  return *later = 0, give(d, now, Count(asked("mig") && d == &cards[0]));
}
Return nvmlDeviceGetMaxMigDeviceCount(Device, Count* n) { return *n = 7, success; }
Return nvmlDeviceGetMigDeviceHandleByIndex(Device, Count i, Device* d) { return *d = &part, i == 2 ? success : 6; }
Return nvmlEventSetCreate(EventSet* set) { return *set = new nvmlEventSet_st{0}, success; }
Return nvmlDeviceRegisterEvents(Device d, Large types, EventSet set) {
  if (d == &cards[1]) return not_supported;
  set->left = types == event_xid && asked("xid") ? 2 : 0;
  return success;
}
Return nvmlEventSetWait_v2(EventSet set, EventData* event, Count) {
  if (set->left == 0) return timeout;
  *event = {&cards[0], event_xid, set->left-- == 2 ? Large(79) : Large(31), 0, 0};
  return success;
}
Return nvmlEventSetFree(EventSet set) { return delete set, success; }
}
