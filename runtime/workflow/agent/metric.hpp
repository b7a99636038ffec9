// Metric: one number that a script, a call or a machine reports, as a line of JSON:
//   {"at_us":1732787700000000,"gpu":0,"name":"loss","step":3,"value":2.31}
// `gpu` and `step` are there only where they apply; NaN and infinity are written as in a Value. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/base/value.hpp"

namespace rille::agent {

inline constexpr std::size_t metric_name_bytes_max = 128, metric_line_bytes_max = 1024;
inline constexpr std::int64_t metrics_bytes_max = 64 << 20;  // of one call on one machine, and of a script

// The series that a machine reports of itself, every machine_metrics_every_us while a call runs there.
inline constexpr std::int64_t machine_metrics_every_us = 10'000'000;
inline constexpr const char *gpu_utilization = "gpu_utilization", *gpu_memory = "gpu_memory_bytes",
                            *gpu_power = "gpu_power_watts", *cpu_utilization = "cpu_utilization";

struct Metric {
  std::string name;
  double value = 0;
  std::int64_t at_us = 0;
  std::optional<double> step;
  std::int64_t gpu = -1;  // number of the GPU on its machine; -1: the number is of no GPU
};

// Whether the name has 1 to metric_name_bytes_max bytes of UTF-8 without control characters.
bool is_metric_name(std::string_view name);
std::string metric_line(const Metric& metric);  // ends in a newline
// Error invalid: this is not such a line, with or without its newline.
Result<Metric> metric_from_line(std::string_view line);
// Checks that the text is whole lines of metrics. Error invalid: the first line that is not one.
Result<> check_metric_lines(std::string_view lines);

}  // namespace rille::agent
