#include "runtime/workflow/engine/metrics.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <tuple>

namespace rille::engine {

namespace {

constexpr std::int64_t metric_file_bytes_max = agent::metrics_bytes_max + (1 << 20);

std::string metric_folder(const std::string& run_home) { return run_home + "/metrics"; }
std::string metric_path(const std::string& run_home, const std::string& name) {
  return metric_folder(run_home) + "/" + name + ".jsonl";
}

std::string header_line(const MetricSource& source) {
  Value of = Value::Object{}, header;
  if (!source.key.empty()) of.set("key", source.key).set("lease", source.lease).set("generation", source.generation);
  return header.set("source", std::move(of)).to_json() + "\n";
}

bool is_of_machine(const std::string& name) {
  return name == agent::gpu_utilization || name == agent::gpu_memory || name == agent::gpu_power ||
         name == agent::cpu_utilization;
}

struct ReadSeries {
  std::map<std::tuple<std::string, std::string>, MetricSeries> by_name;  // by name and source

  void add(agent::Metric m, const MetricSource& of) {
    const bool machine = !of.key.empty() && is_of_machine(m.name);
    std::string source = machine          ? fmt::format("{} {}", of.lease, of.generation)
                         : of.key.empty() ? std::string("script")
                                          : of.key;
    if (machine && m.gpu >= 0) source += fmt::format(" gpu {}", m.gpu);
    MetricSeries& series = by_name[{m.name, source}];
    if (series.points.empty()) series.name = m.name, series.source = std::move(source), series.of_machine = machine;
    series.points.push_back(std::move(m));
  }
};

// Orders the points; of those with the same step the last stays.
void settle_points(std::vector<agent::Metric>& points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const agent::Metric& a, const agent::Metric& b) { return a.at_us < b.at_us; });
  const bool stepped =
      std::all_of(points.begin(), points.end(), [](const agent::Metric& m) { return m.step.has_value(); });
  if (!stepped) return;
  std::stable_sort(points.begin(), points.end(),
                   [](const agent::Metric& a, const agent::Metric& b) { return *a.step < *b.step; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool last = i + 1 == points.size() || *points[i + 1].step != *points[i].step;
    if (!last) continue;
    if (kept != i) points[kept] = std::move(points[i]);
    ++kept;
  }
  points.resize(kept);
}

Error damaged_metrics(const std::string& path, std::int64_t line) {
  return make_error(ErrorKind::integrity, fmt::format("'{}' is damaged: line {} is no metric", path, line),
                    "move the file away: the rest of the run's metrics can then be read");
}

Result<> read_metric_file(const std::string& path, ReadSeries& into) {
  RILLE_TRY(const std::string text, store::read_file(path, metric_file_bytes_max));
  MetricSource source;
  std::int64_t line = 0;
  for (std::size_t i = 0, end; (end = text.find('\n', i)) != text.npos; i = end + 1) {
    const std::string_view one(text.data() + i, end - i);
    if (++line == 1) {
      const Result<Value> header = Value::from_json(one);
      if (!header || !(*header)["source"].as_object()) return damaged_metrics(path, line);
      const Value& of = (*header)["source"];
      source.key = of.text("key"), source.lease = of.text("lease"), source.generation = of.integer("generation");
      continue;
    }
    Result<agent::Metric> m = agent::metric_from_line(one);
    if (!m) return damaged_metrics(path, line);
    into.add(std::move(*m), source);
  }
  return {};
}

}  // namespace

std::string MetricFile::call_name(const std::string& call_key, std::int64_t generation) {
  return fmt::format("{}-{}", call_key, generation);
}

bool MetricFile::exists(const std::string& run_home, const std::string& name) {
  return access(metric_path(run_home, name).c_str(), F_OK) == 0;
}

Result<MetricFile> MetricFile::open(const std::string& run_home, const std::string& name, const MetricSource& source) {
  RILLE_CHECK(store::make_private_directory(metric_folder(run_home)));
  MetricFile out;
  out.path_ = metric_path(run_home, name);
  out.file_ = store::Fd(::open(out.path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!out.file_.valid()) return errno_error("open", out.path_, errno);
  RILLE_TRY(std::string text, store::read_file(out.path_, metric_file_bytes_max));
  const std::size_t whole = text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1;
  if (whole < text.size() && ftruncate(out.file_.get(), static_cast<off_t>(whole)) != 0)
    return errno_error("write", out.path_, errno);
  if (whole == 0) RILLE_CHECK(store::write_all(out.file_.get(), header_line(source), out.path_));
  else out.size_ = static_cast<std::int64_t>(whole - text.find('\n') - 1);
  return out;
}

Result<> MetricFile::append(std::string_view lines) {
  if (size_ + static_cast<std::int64_t>(lines.size()) > agent::metrics_bytes_max) return {};
  RILLE_CHECK(store::write_all(file_.get(), lines, path_));
  size_ += static_cast<std::int64_t>(lines.size());
  return {};
}

Result<std::vector<MetricSeries>> read_metrics(const std::string& run_home) {
  std::vector<std::string> paths;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(metric_folder(run_home), none))
    if (entry.path().extension() == ".jsonl") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  ReadSeries read;
  for (const std::string& path : paths) RILLE_CHECK(read_metric_file(path, read));
  std::vector<MetricSeries> out;
  for (auto& [name, series] : read.by_name) {
    settle_points(series.points);
    out.push_back(std::move(series));
  }
  return out;
}

}  // namespace rille::engine
