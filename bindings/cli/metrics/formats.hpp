// The metrics of runs in the formats of other programs: `rille metrics` writes them to files, standard output or a
// collector, `rille serve` answers a monitor. Pure functions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/workflow/engine/engine.hpp"
#include "runtime/workflow/engine/metrics.hpp"

namespace rille::cli {

using MetricList = std::vector<engine::MetricSeries>;

// As JSON has it; what it lacks is "NaN", "+Inf" or "-Inf".
std::string metric_number(double value);

// One line per point: RFC 4180, and JSON lines.
std::string metrics_csv(const MetricList& all);
std::string metrics_jsonl(const MetricList& all);

// Prometheus' text format (prometheus.io/docs/instrumenting/exposition_formats). Samples of one family may be added
// in any order: they stand together in the text, as the format asks. Every family is a gauge.
class PrometheusText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  void add(const std::string& family, const std::string& help, const Labels& labels, double value);
  // The last value of each series of a run. GPU series have the names of NVIDIA's DCGM exporter.
  void add_run(const std::string& run, const MetricList& all);
  std::string text() const;

 private:
  std::vector<std::string> order_;                                    // of the families
  std::map<std::string, std::pair<std::string, std::string>> lines_;  // family -> HELP and TYPE, samples
};

// Event files of TensorBoard, one for each source of series: a path below the folder that TensorBoard is given, and the
// file's bytes. The same run gives the same paths. A point without a step has its place in the series as its step.
std::vector<std::pair<std::string, std::string>> metrics_tensorboard(const MetricList& all, const std::string& run,
                                                                     std::int64_t created_us);

// Bodies of ExportMetricsServiceRequest in OTLP's JSON, each with at most otlp_points_max points.
inline constexpr std::size_t otlp_points_max = 10'000;
std::vector<std::string> metrics_otlp(const MetricList& all, const engine::RunRow& run);

}  // namespace rille::cli
