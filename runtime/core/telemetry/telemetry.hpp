// Telemetry: the current state of this machine's CPU and GPUs. A reading is an object Value; members that the hardware
// or the driver does not report are left out. Member names end in their unit:
//
//   a GPU: index name uuid bus driver, gpu_percent (share of the last sample period in which a kernel ran),
//     memory_percent (share of the last sample period in which GPU memory was read or written), memory_used_bytes
//     memory_total_bytes, power_watts power_limit_watts energy_joules, temperature_celsius memory_temperature_celsius,
//     sm_clock_mhz memory_clock_mhz, slowdowns (a list of reasons), pcie_tx_bytes_per_second pcie_rx_bytes_per_second,
//     ecc_corrected ecc_uncorrected (since the driver started), remapped_rows, xids (critical errors since the previous
//     reading), processes (pid name memory_bytes), mig (true on a partitioned GPU), lost (true: the GPU has fallen off
//     the bus; nothing else is reported)
//   the CPU: name, cpu_percent (of all cores, since the previous reading), memory_used_bytes memory_total_bytes
//
// Error `device`: there is no driver (nvml.hpp) or no such GPU. A reading takes about a millisecond.
// A GpuTelemetry or CpuTelemetry may be used by one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/telemetry/nvml.hpp"

namespace rille::telemetry {

class GpuTelemetry {
 public:
  static Result<GpuTelemetry> open();
  // Reads every GPU, and every MIG instance of a partitioned GPU.
  Result<Value::Array> read();
  // Mean utilization, from 0 to 1, of the GPUs that report it. Error `device`: no GPU reports it. Faster than read().
  Result<double> busy() const;
  // Reads the GPU or MIG instance with this uuid ("GPU-.." or "MIG-..").
  Result<Value> read(const std::string& uuid);

 private:
  explicit GpuTelemetry(const nvml::Functions* f) : f_(f) {}
  struct Card {
    unsigned index;
    nvml::Device device;
  };  // device is null if the GPU is lost
  Result<std::vector<Card>> cards() const;
  Value reading(nvml::Device device);
  void collect_events();
  const nvml::Functions* f_;
  std::shared_ptr<nvmlEventSet_st> events_;
  std::vector<std::pair<nvml::Device, nvml::Large>> xids_;  // XID errors received and not yet reported by read()
};

class CpuTelemetry {
 public:
  CpuTelemetry() { read(); }
  Value read();

 private:
  std::uint64_t busy_ = 0, all_ = 0;  // CPU time, in clock ticks, at the last reading
};

}  // namespace rille::telemetry
