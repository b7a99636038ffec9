#include "runtime/workflow/agent/metric.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/core/base/base64.hpp"

namespace rille::agent {

namespace {

Error no_metric(std::string_view line) {
  return make_error(ErrorKind::invalid, "this is not a metric: " + Value(line.substr(0, 200)).to_json());
}

}  // namespace

bool is_metric_name(std::string_view name) {
  const auto controls = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return !name.empty() && name.size() <= metric_name_bytes_max && is_utf8(name) &&
         std::none_of(name.begin(), name.end(), controls);
}

std::string metric_line(const Metric& metric) {
  Value v;
  v.set("at_us", metric.at_us).set("name", metric.name).set("value", metric.value);
  if (metric.step) v.set("step", *metric.step);
  if (metric.gpu >= 0) v.set("gpu", metric.gpu);
  return v.to_json() + "\n";
}

Result<Metric> metric_from_line(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.size() > metric_line_bytes_max) return no_metric(line);
  const Result<Value> read = Value::from_json(line);
  if (!read || !read->as_object()) return no_metric(line);
  const double *at = (*read)["at_us"].as_number(), *value = (*read)["value"].as_number();
  const Value &step = (*read)["step"], &gpu = (*read)["gpu"];
  Metric m;
  m.name = read->text("name");
  const bool sound = at && *at >= 0 && *at < 9e15 && value && is_metric_name(m.name) &&
                     (step.is_null() || (step.as_number() && std::isfinite(*step.as_number()))) &&
                     (gpu.is_null() || (gpu.as_number() && *gpu.as_number() >= 0 && *gpu.as_number() < 1e6));
  if (!sound) return no_metric(line);
  m.at_us = static_cast<std::int64_t>(*at);
  m.value = *value;
  if (step.as_number()) m.step = *step.as_number();
  if (gpu.as_number()) m.gpu = static_cast<std::int64_t>(*gpu.as_number());
  return m;
}

Result<> check_metric_lines(std::string_view lines) {
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    if (end == lines.npos) return no_metric(lines);
    RILLE_CHECK(metric_from_line(lines.substr(0, end)));
    lines.remove_prefix(end + 1);
  }
  return {};
}

}  // namespace rille::agent
