// Metrics as CSV and as JSON lines.
#include <fmt/format.h>

#include <cmath>

#include "bindings/cli/metrics/formats.hpp"

namespace rille::cli {

std::string metric_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return Value(value).to_json();
}

std::string metrics_csv(const MetricList& all) {
  const auto quoted = [](const std::string& text) {
    if (text.find_first_of(",\"\n\r") == text.npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + "\"";
  };
  std::string out = "name,source,step,time,value\n";
  for (const engine::MetricSeries& s : all)
    for (const agent::Metric& m : s.points)
      out += fmt::format("{},{},{},{:.6f},{}\n", quoted(s.name), quoted(s.source), m.step ? metric_number(*m.step) : "",
                         static_cast<double>(m.at_us) / 1e6, metric_number(m.value));
  return out;
}

std::string metrics_jsonl(const MetricList& all) {
  std::string out;
  for (const engine::MetricSeries& s : all)
    for (const agent::Metric& m : s.points) {
      Value v;
      v.set("name", s.name).set("source", s.source).set("at_us", m.at_us).set("value", m.value);
      if (m.step) v.set("step", *m.step);
      out += v.to_json() + "\n";
    }
  return out;
}

}  // namespace rille::cli
