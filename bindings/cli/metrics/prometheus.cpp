// Prometheus' text format.
#include <fmt/format.h>

#include "bindings/cli/metrics/formats.hpp"

namespace rille::cli {

namespace {

std::string escaped_label(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
  return out;
}

// What a machine says of its GPUs, under the names and in the units of NVIDIA's DCGM exporter.
struct OfDcgm {
  const char *name, *family, *help;
  double factor;
};
constexpr OfDcgm of_dcgm[] = {
    {agent::gpu_utilization, "DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", 1},
    {agent::gpu_memory, "DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", 1.0 / (1 << 20)},
    {agent::gpu_power, "DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", 1}};

}  // namespace

void PrometheusText::add(const std::string& family, const std::string& help, const Labels& labels, double value) {
  auto& [head, lines] = lines_[family];
  if (head.empty()) {
    head = fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", family, help);
    order_.push_back(family);
  }
  std::string inside;
  for (const auto& [name, text] : labels)
    inside += fmt::format("{}{}=\"{}\"", inside.empty() ? "" : ",", name, escaped_label(text));
  lines += fmt::format("{}{} {}\n", family, inside.empty() ? "" : "{" + inside + "}", metric_number(value));
}

void PrometheusText::add_run(const std::string& run, const MetricList& all) {
  for (const engine::MetricSeries& s : all) {
    const agent::Metric& last = s.points.back();
    const OfDcgm* known = nullptr;
    for (const OfDcgm& row : of_dcgm)
      if (s.of_machine && s.name == row.name) known = &row;
    if (known)
      add(known->family, known->help, {{"run", run}, {"source", s.source}, {"gpu", std::to_string(last.gpu)}},
          last.value * known->factor);
    else
      add("rille_metric", "The last value of a metric of a run.",
          {{"run", run}, {"source", s.source}, {"name", s.name}}, last.value);
  }
}

std::string PrometheusText::text() const {
  std::string out;
  for (const std::string& family : order_) out += lines_.at(family).first + lines_.at(family).second;
  return out;
}

}  // namespace rille::cli
