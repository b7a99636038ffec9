// How fast trainings were, as they measured it themselves: $RILLE_HOME/measured.json, the newest row of each kind
// (workload, machine, precision, batch). Rows have cost money, so this is no cache: a file that cannot be read is an
// error and is never written over. Several processes may write at once; keep() waits for the disk and for the others.
// Any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

struct Measurement {
  std::string workload, unit = "tokens", precision, run;  // unit: also "samples"
  std::string provider, offer, region;
  std::string gpu;                    // as the offer names it; "": the processors did it
  int gpu_count = 0;                  // of the machine
  std::int64_t gpu_memory_bytes = 0;  // of one
  bool spot = false;
  double per_second = 0;                         // of one process, which computes on one GPU: the median of its steps
  double batch = 0;                              // tokens or samples of a step
  std::int64_t steps = 0;                        // that the median rests on
  std::int64_t params = 0;                       // of the model; 0: not told
  std::int64_t at_us = 0;                        // wall time
  Micros price_micros_per_hour = price_unknown;  // of the machine, in dollars, as it was then

  // Tokens or samples for a dollar at that price, with all GPUs of the machine at work; 0: nothing is known of it.
  double per_dollar() const;
  Value to_value() const;                                     // as kept, and as people see it
  static Result<Measurement> from_value(const Value& value);  // integrity: names the field
};

// In the place of the older one of its kind.
Result<> keep(const std::string& home, const Measurement& measurement);
// The newest first; none where there is no file. integrity: it is not what keep() writes.
Result<std::vector<Measurement>> measurements(const std::string& home);

}  // namespace rille::provider
