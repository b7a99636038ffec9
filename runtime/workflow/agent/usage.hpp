// Usage: the utilization of the agent's machine, averaged over the last minute: of the GPUs, or of the processors if no
// GPU reports a utilization. Processes of other users count too. GPUs are read on the thread pool, one reading at a
// time, so that a hanging driver does not block the loop; the last reading then stays valid. Loop thread only.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/core/telemetry/telemetry.hpp"

namespace rille::agent {

class Usage {
 public:
  static constexpr std::int64_t window_us = 60'000'000;

  explicit Usage(Loop& loop);
  // Takes a reading, at most one per second.
  void look(std::int64_t wall_us);
  // The utilization, 0 to 1; nullopt before the second reading.
  std::optional<double> utilization() const;
  // The usage as {utilization, cpu_percent, gpu_percent (mean of the GPUs that report it), memory_used_bytes,
  // memory_total_bytes}; unknown values are left out.
  Value to_value() const;
  // Lines of metrics (metric.hpp) of the latest reading of each GPU and of the processors; "": nothing was read yet.
  std::string metric_lines(std::int64_t wall_us) const;

 private:
  struct Gpus;  // shared with the reading thread, because a reading that hangs may outlive Usage
  static Task<void> read_gpus(Loop& loop, std::shared_ptr<Gpus> gpus, std::int64_t wall_us);
  struct Reading {
    std::int64_t at_us;
    double busy;
  };

  Loop& loop_;
  telemetry::CpuTelemetry cpu_;
  Value cpu_now_;
  std::shared_ptr<Gpus> gpus_;
  std::deque<Reading> readings_;  // the readings of the last minute
};

}  // namespace rille::agent
