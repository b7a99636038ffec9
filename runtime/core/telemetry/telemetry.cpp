#include "runtime/core/telemetry/telemetry.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace rille::telemetry {

namespace {

using namespace nvml;

constexpr Count core_sensor = 0, sm_clock = 1, memory_clock = 2, pcie_tx = 0, pcie_rx = 1;
constexpr Count corrected = 0, uncorrected = 1, since_driver_start = 0;
constexpr Count memory_temperature_field = 82;

struct Slowdown {
  Large bit;
  const char* name;
};
constexpr Slowdown slowdowns[] = {{0x2, "application_clocks"}, {0x4, "power_cap"},       {0x8, "hardware"},
                                  {0x10, "sync_boost"},        {0x20, "thermal"},        {0x40, "hardware_thermal"},
                                  {0x80, "power_brake"},       {0x100, "display_clocks"}};

// Collects the values of one reading as object members; a value that NVML cannot read is left out.
class Reading {
 public:
  Reading(const Functions& f, Device d) : f_(f), d_(d) {}

  template <class... A, class... B>
  bool ask(Return (*function)(Device, A...), B... arguments) {
    if (!function || lost) return false;
    const Return code = function(d_, arguments...);
    lost = code == gpu_is_lost;
    return code == success;
  }

  template <class F>
  void text(const char* member, F function) {
    char name[96] = {};
    if (ask(function, name, Count(sizeof name))) value.set(member, name);
  }

  template <class F, class... B>
  void number(const char* member, double factor, F function, B... arguments) {
    Count n = 0;
    if (ask(function, arguments..., &n)) value.set(member, double(n) * factor);
  }

  void memory() {
    Memory2 second{};
    second.version = Count(sizeof second) | 2u << 24;
    if (ask(f_.nvmlDeviceGetMemoryInfo_v2, &second)) {
      value.set("memory_used_bytes", double(second.used)).set("memory_total_bytes", double(second.total));
      return;
    }
    Memory first{};
    if (ask(f_.nvmlDeviceGetMemoryInfo, &first))
      value.set("memory_used_bytes", double(first.used)).set("memory_total_bytes", double(first.total));
  }

  void temperatures() {
    number("temperature_celsius", 1, f_.nvmlDeviceGetTemperature, core_sensor);
    FieldValue field{};
    field.field = memory_temperature_field;
    if (ask(f_.nvmlDeviceGetFieldValues, 1, &field) && field.result == success)
      value.set("memory_temperature_celsius", double(field.value.number));
  }

  void slowed() {
    Large bits = 0;
    if (!ask(f_.nvmlDeviceGetCurrentClocksThrottleReasons, &bits)) return;
    Value::Array list;
    for (const auto& s : slowdowns)
      if (bits & s.bit) list.push_back(s.name);
    value.set("slowdowns", std::move(list));
  }

  void errors() {
    Large n = 0;
    if (ask(f_.nvmlDeviceGetTotalEccErrors, corrected, since_driver_start, &n)) value.set("ecc_corrected", double(n));
    if (ask(f_.nvmlDeviceGetTotalEccErrors, uncorrected, since_driver_start, &n))
      value.set("ecc_uncorrected", double(n));
    Count rows[4] = {};
    if (ask(f_.nvmlDeviceGetRemappedRows, &rows[0], &rows[1], &rows[2], &rows[3]))
      value.set("remapped_rows", double(rows[0] + rows[1]));
  }

  void processes() {
    Count n = 64;
    std::vector<ProcessInfo> list(n);
    if (!f_.nvmlDeviceGetComputeRunningProcesses_v3 || lost) return;
    Return code;
    while ((code = f_.nvmlDeviceGetComputeRunningProcesses_v3(d_, &n, list.data())) == insufficient_size) {
      n += 16;  // room for processes that start between two calls
      list.resize(n);
    }
    if (code != success) return;
    Value::Array out;
    for (Count i = 0; i < n; ++i) {
      Value one;
      one.set("pid", double(list[i].pid));
      if (list[i].used_bytes != ~Large(0)) one.set("memory_bytes", double(list[i].used_bytes));
      char name[256] = {};
      if (f_.nvmlSystemGetProcessName && f_.nvmlSystemGetProcessName(list[i].pid, name, sizeof name) == success)
        one.set("name", name);
      out.push_back(std::move(one));
    }
    value.set("processes", std::move(out));
  }

  Value value;
  bool lost = false;

 private:
  const Functions& f_;
  Device d_;
};

}  // namespace

Result<GpuTelemetry> GpuTelemetry::open() {
  RILLE_TRY(const auto* functions, load());
  GpuTelemetry t(functions);
  // NVML reports an XID error only through event handles that were registered before the error.
  const Functions& f = *functions;
  EventSet events = nullptr;
  if (f.nvmlEventSetFree && f.nvmlDeviceRegisterEvents && f.nvmlEventSetWait_v2 && f.nvmlEventSetCreate &&
      f.nvmlEventSetCreate(&events) == success) {
    t.events_ = {events, [&f](EventSet e) { f.nvmlEventSetFree(e); }};
    RILLE_TRY(const auto all, t.cards());
    for (const Card& card : all)
      // ignore failure: not every GPU supports events
      if (card.device) (void)f.nvmlDeviceRegisterEvents(card.device, event_xid, events);
  }
  return t;
}

Result<std::vector<GpuTelemetry::Card>> GpuTelemetry::cards() const {
  Count n = 0;
  if (const Return code = f_->nvmlDeviceGetCount_v2(&n); code != success) return failure(*f_, "count the GPUs", code);
  std::vector<Card> out;
  for (Count i = 0; i < n; ++i) {
    Device d = nullptr;
    const Return code = f_->nvmlDeviceGetHandleByIndex_v2(i, &d);
    if (code == success) out.push_back({i, d});
    // keep the lost GPU in the list, so that its loss is reported
    else if (code == gpu_is_lost) out.push_back({i, nullptr});
    else if (code != no_permission) return failure(*f_, fmt::format("inspect GPU {}", i), code);
  }
  return out;
}

void GpuTelemetry::collect_events() {
  EventData event{};
  while (events_ && f_->nvmlEventSetWait_v2(events_.get(), &event, 0) == success)
    if (event.type == event_xid) xids_.emplace_back(event.device, event.data);
}

Value GpuTelemetry::reading(Device device) {
  Reading r(*f_, device);
  r.text("uuid", f_->nvmlDeviceGetUUID);
  r.text("name", f_->nvmlDeviceGetName);
  PciInfo pci{};
  if (r.ask(f_->nvmlDeviceGetPciInfo_v3, &pci)) r.value.set("bus", std::string(pci.bus_id));
  Utilization busy{};
  if (r.ask(f_->nvmlDeviceGetUtilizationRates, &busy))
    r.value.set("gpu_percent", double(busy.gpu)).set("memory_percent", double(busy.memory));
  r.memory();
  r.number("power_watts", 1e-3, f_->nvmlDeviceGetPowerUsage);
  r.number("power_limit_watts", 1e-3, f_->nvmlDeviceGetEnforcedPowerLimit);
  Large millijoules = 0;
  if (r.ask(f_->nvmlDeviceGetTotalEnergyConsumption, &millijoules))
    r.value.set("energy_joules", double(millijoules) * 1e-3);
  r.temperatures();
  r.number("sm_clock_mhz", 1, f_->nvmlDeviceGetClockInfo, sm_clock);
  r.number("memory_clock_mhz", 1, f_->nvmlDeviceGetClockInfo, memory_clock);
  r.slowed();
  r.number("pcie_tx_bytes_per_second", 1024, f_->nvmlDeviceGetPcieThroughput, pcie_tx);
  r.number("pcie_rx_bytes_per_second", 1024, f_->nvmlDeviceGetPcieThroughput, pcie_rx);
  r.errors();
  r.processes();
  Count mig = 0, pending = 0;
  if (r.ask(f_->nvmlDeviceGetMigMode, &mig, &pending) && mig) r.value.set("mig", true);
  Value::Array xids;
  for (const auto& [on, number] : xids_)
    if (on == device) xids.push_back(double(number));
  std::erase_if(xids_, [&](const auto& x) { return x.first == device; });
  r.value.set("xids", std::move(xids));
  if (r.lost) r.value.set("lost", true);
  return std::move(r.value);
}

Result<Value::Array> GpuTelemetry::read() {
  collect_events();
  char version[80] = {};
  if (f_->nvmlSystemGetDriverVersion) (void)f_->nvmlSystemGetDriverVersion(version, sizeof version);
  RILLE_TRY(const auto all, cards());
  Value::Array out;
  const auto add = [&](Device d, const std::string& index) {
    Value v = d ? reading(d) : Value().set("lost", true);
    v.set("index", index);
    if (*version) v.set("driver", version);
    out.push_back(std::move(v));
  };
  for (const auto& [index, device] : all) {
    add(device, fmt::format("{}", index));
    Count most = 0;
    if (!out.back().boolean("mig") || !f_->nvmlDeviceGetMaxMigDeviceCount || !f_->nvmlDeviceGetMigDeviceHandleByIndex ||
        f_->nvmlDeviceGetMaxMigDeviceCount(device, &most) != success)
      continue;
    for (Count k = 0; k < most; ++k) {
      Device part = nullptr;
      if (f_->nvmlDeviceGetMigDeviceHandleByIndex(device, k, &part) == success)
        add(part, fmt::format("{}:{}", index, k));
    }
  }
  return out;
}

Result<double> GpuTelemetry::busy() const {
  RILLE_TRY(const auto all, cards());
  double sum = 0;
  int told = 0;
  for (const Card& card : all) {
    Utilization now{};
    if (!card.device || !f_->nvmlDeviceGetUtilizationRates ||
        f_->nvmlDeviceGetUtilizationRates(card.device, &now) != success)
      continue;
    sum += double(now.gpu) / 100;
    ++told;
  }
  if (told == 0)
    return make_error(ErrorKind::device, "no GPU reports its utilization",
                      "run nvidia-smi to see whether the GPUs answer; update the NVIDIA driver");
  return sum / told;
}

Result<Value> GpuTelemetry::read(const std::string& uuid) {
  collect_events();
  Device d = nullptr;
  if (!f_->nvmlDeviceGetHandleByUUID)
    return make_error(ErrorKind::device, "the NVML library is too old", "update the NVIDIA driver");
  if (const Return code = f_->nvmlDeviceGetHandleByUUID(uuid.c_str(), &d); code != success)
    return failure(*f_, "find the GPU " + uuid, code);
  return reading(d);
}

Value CpuTelemetry::read() {
  Value out;
  std::ifstream stat("/proc/stat");
  std::string word;
  std::uint64_t all = 0, idle = 0, ticks = 0;
  stat >> word;
  // fields in order: user nice system idle iowait irq softirq steal
  for (int field = 0; field < 8 && stat >> ticks; ++field) {
    all += ticks;
    if (field == 3 || field == 4) idle += ticks;
  }
  const std::uint64_t busy = all - idle;
  if (all > all_) out.set("cpu_percent", 100.0 * double(busy - std::min(busy, busy_)) / double(all - all_));
  busy_ = busy;
  all_ = all;
  std::ifstream memory("/proc/meminfo");
  double total = 0, available = 0, kib = 0;
  for (std::string line; std::getline(memory, line);) {
    std::istringstream words(line);
    words >> word >> kib;
    if (word == "MemTotal:") total = kib * 1024;
    if (word == "MemAvailable:") available = kib * 1024;
  }
  out.set("name", "cpu").set("memory_total_bytes", total).set("memory_used_bytes", total - available);
  return out;
}

}  // namespace rille::telemetry
