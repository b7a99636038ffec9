// Telemetry: the current state of this machine's CPU and GPUs. A reading is a Value, an object; members that the
// hardware or the driver does not report are left out. Names end in their unit:
//
//   a GPU: index name uuid bus driver, gpu_percent memory_percent (time in the last sample period in which a kernel
//     ran; in which memory was read or written), memory_used_bytes memory_total_bytes, power_watts power_limit_watts
//     energy_joules, temperature_celsius memory_temperature_celsius, sm_clock_mhz memory_clock_mhz, slowdowns (a list
//     of reasons), pcie_tx_bytes_per_second pcie_rx_bytes_per_second, ecc_corrected ecc_uncorrected (since the driver
//     started), remapped_rows, xids (critical errors since the reading before), processes (pid name memory_bytes),
//     mig (true on a partitioned GPU), lost (true: it has fallen off the bus; nothing else is reported)
//   the CPU: name, cpu_percent (of all cores, since the reading before), memory_used_bytes memory_total_bytes
//
// Errors: device, when there is no driver (nvml.hpp) or no such GPU. A reading takes about a millisecond.
// Threads: one at a time.
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
  // Every GPU, and the MIG instances of a partitioned one.
  Result<Value::Array> read();
  // Utilization from 0 to 1: the mean over the GPUs that report it. device: none does. Faster than a reading.
  Result<double> busy() const;
  // One GPU, by its uuid: "GPU-..", "MIG-..".
  Result<Value> read(const std::string& uuid);

 private:
  explicit GpuTelemetry(const nvml::Functions* f) : f_(f) {}
  struct Card {
    unsigned index;
    nvml::Device device;
  };  // null: the GPU is lost
  Result<std::vector<Card>> cards() const;
  Value reading(nvml::Device device);
  void collect_events();
  const nvml::Functions* f_;
  std::shared_ptr<nvmlEventSet_st> events_;
  std::vector<std::pair<nvml::Device, nvml::Large>> xids_;  // not yet reported
};

class CpuTelemetry {
 public:
  CpuTelemetry() { read(); }
  Value read();

 private:
  std::uint64_t busy_ = 0, all_ = 0;  // ticks at the last reading
};

}  // namespace rille::telemetry
