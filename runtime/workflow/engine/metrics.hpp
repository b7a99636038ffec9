// The metrics of a run: files of lines in the folder `metrics` of the run's folder, one for each writer: the script,
// and each call on each machine. The first line of a file says whose it is: {"source":{..}}. They are not in the
// journal, whose rows are synced and hashed while steps wait. docs/design/reports.md. Loop thread only; these calls
// block.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/store/file.hpp"
#include "runtime/workflow/agent/metric.hpp"

namespace rille::engine {

// Where the points of a file come from.
struct MetricSource {
  MetricSource() = default;     // not an aggregate: see loop/task.hpp
  std::string key;              // of the call's entry; "": the script itself
  std::string lease;            // the name of the machine's lease
  std::int64_t generation = 0;  // of the machine
};

class MetricFile {
 public:
  // The file's name: of the script's own metrics, and of a call's on one machine.
  static std::string script_name() { return "script"; }
  static std::string call_name(const std::string& call_key, std::int64_t generation);
  static bool exists(const std::string& run_home, const std::string& name);
  // Opens the file or creates it. Cuts off a line that a power cut left incomplete.
  static Result<MetricFile> open(const std::string& run_home, const std::string& name, const MetricSource& source);
  // Appends whole lines by one write, so that a killed process leaves no part of a line. At metrics_bytes_max further
  // ones are dropped.
  Result<> append(std::string_view lines);
  std::int64_t size_bytes() const { return size_; }  // of the lines, without the first

 private:
  store::Fd file_;
  std::string path_;
  std::int64_t size_ = 0;
};

// One curve. Points with a step are in the order of steps, and a step has one point: the last that was written, since a
// training that restarts from a checkpoint repeats steps. Points without a step are in the order of time.
struct MetricSeries {
  std::string name;
  std::string source;       // "main/train#1", "script", or of a machine "trainer 2 gpu 0"
  bool of_machine = false;  // its load, which the agent reports
  std::vector<agent::Metric> points;
};
// Error integrity: a file has a line that is no metric. A last line without its end is left out.
Result<std::vector<MetricSeries>> read_metrics(const std::string& run_home);

}  // namespace rille::engine
