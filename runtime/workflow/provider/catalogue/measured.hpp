// Measured training speeds: $RILLE_HOME/measured.json, the newest row per workload, machine, precision and batch. The
// rows cost money, so this is no cache: an unreadable file is an error and is never overwritten. Several processes may
// write concurrently; keep() waits for the disk and for the others. Any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

struct Measurement {
  std::string workload, unit = "tokens", precision, run;  // unit: also "samples"
  std::string provider, offer, region;
  std::string gpu;                    // as in the offer; "": computed on the CPU
  int gpu_count = 0;                  // of the machine
  std::int64_t gpu_memory_bytes = 0;  // of one
  bool spot = false;
  double per_second = 0;                         // of one process with one GPU: the median of its steps
  double batch = 0;                              // tokens or samples per step
  std::int64_t steps = 0;                        // number of steps in the median
  std::int64_t params = 0;                       // of the model; 0: unknown
  std::int64_t at_us = 0;                        // wall time
  Micros price_micros_per_hour = price_unknown;  // of the machine at that time, in dollars

  // Tokens or samples per dollar at that price, with all GPUs of the machine in use; 0: unknown.
  double per_dollar() const;
  Value to_value() const;                                     // as stored and as shown
  static Result<Measurement> from_value(const Value& value);  // integrity: names the field
};

// Replaces the older row of its kind.
Result<> keep(const std::string& home, const Measurement& measurement);
// Newest first; empty if there is no file. integrity: not written by keep().
Result<std::vector<Measurement>> measurements(const std::string& home);

}  // namespace rille::provider
