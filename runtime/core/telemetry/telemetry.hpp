// Telemetry: what the processors and the GPUs of this machine do now. A reading is a Value, an object whose members are
// left out where the hardware or the driver does not tell them. Names end in their unit:
//
//   a GPU: index name uuid bus driver, gpu_percent memory_percent (time in the last sample period in which a kernel
//     ran; in which memory was read or written), memory_used_bytes memory_total_bytes, power_watts power_limit_watts
//     energy_joules, temperature_celsius memory_temperature_celsius, sm_clock_mhz memory_clock_mhz, slowdowns (a list
//     of reasons), pcie_tx_bytes_per_second pcie_rx_bytes_per_second, ecc_corrected ecc_uncorrected (since the driver
//     started), remapped_rows, xids (critical errors since the reading before), processes (pid name memory_bytes),
//     mig (true on a divided card), lost (true: it has fallen off its bus; nothing else is told)
//   the CPU: name, cpu_percent (of all cores, since the reading before), memory_used_bytes memory_total_bytes
//
// Errors: device, when there is no driver (nvml.hpp) or no such card. A reading takes about a millisecond.
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
  // Every GPU; of a divided one, its instances, too.
  Result<Value::Array> read();
  // How busy they are, from 0 to 1: the mean of those that tell. device: none does. Quicker than a reading.
  Result<double> busy() const;
  // One, by its uuid: "GPU-..", "MIG-..".
  Result<Value> read(const std::string& uuid);

 private:
  explicit GpuTelemetry(const nvml::Functions* f) : f_(f) {}
  struct Card {
    unsigned index;
    nvml::Device device;
  };  // null: it is lost
  Result<std::vector<Card>> cards() const;
  Value reading(nvml::Device device);
  void collect_events();
  const nvml::Functions* f_;
  std::shared_ptr<nvmlEventSet_st> events_;
  std::vector<std::pair<nvml::Device, nvml::Large>> xids_;  // not told yet
};

class CpuTelemetry {
 public:
  CpuTelemetry() { read(); }
  Value read();

 private:
  std::uint64_t busy_ = 0, all_ = 0;  // ticks at the reading before
};

}  // namespace rille::telemetry
