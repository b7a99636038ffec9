// Measured training speeds, in the file $RILLE_HOME/measured.json: the newest row per workload, machine, precision and
// batch. Measuring again would cost money, so an unreadable file is an error and is never overwritten. Several
// processes may write concurrently; keep() blocks for the disk and for other writers. Any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

struct Measurement {
  std::string workload, unit = "tokens", precision, run;  // unit: "tokens" or "samples"
  std::string provider, offer, region;
  std::string gpu;                    // GPU model as in the offer; "": trained on the CPU
  int gpu_count = 0;                  // number of GPUs of the machine
  std::int64_t gpu_memory_bytes = 0;  // memory of one GPU
  bool spot = false;
  double per_second = 0;    // tokens or samples per second of one process on one GPU: the median over the steps
  double batch = 0;         // tokens or samples per step
  std::int64_t steps = 0;   // number of steps that the median is taken over
  std::int64_t params = 0;  // number of parameters of the trained model; 0: unknown
  std::int64_t at_us = 0;   // wall time of the measurement
  Micros price_micros_per_hour = price_unknown;  // price of the whole machine at that time, in dollars

  // Tokens or samples per dollar at price_micros_per_hour, if all GPUs of the machine train; 0: unknown.
  double per_dollar() const;
  Value to_value() const;                                     // as stored and as shown
  static Result<Measurement> from_value(const Value& value);  // integrity: names the field
};

// Stores the measurement; replaces the older one of the same workload, machine, precision and batch.
Result<> keep(const std::string& home, const Measurement& measurement);
// All stored measurements, newest first; empty if there is no file. Error integrity: keep() did not write this file.
Result<std::vector<Measurement>> measurements(const std::string& home);

}  // namespace rille::provider
