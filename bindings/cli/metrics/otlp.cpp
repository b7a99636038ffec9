// OTLP's JSON (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding"): 64-bit numbers are texts, names are in
// lowerCamelCase, and what JSON lacks is "NaN", "Infinity" or "-Infinity". Every series is a gauge.
#include <fmt/format.h>

#include <cmath>

#include "bindings/cli/metrics/formats.hpp"
#include "runtime/core/base/plain_json.hpp"

namespace rille::cli {

namespace {

Value text_attribute(const char* key, const std::string& text) {
  return Value().set("key", key).set("value", Value().set("stringValue", text));
}

Value otlp_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

// What UCUM calls the unit.
const char* unit_of(const engine::MetricSeries& s) {
  if (!s.of_machine) return nullptr;
  return s.name == agent::gpu_memory ? "By" : s.name == agent::gpu_power ? "W" : "%";
}

Value otlp_point(const engine::MetricSeries& s, const agent::Metric& m) {
  Value::Array attributes{text_attribute("rille.source", s.source)};
  if (m.gpu >= 0)
    attributes.push_back(Value().set("key", "rille.gpu").set("value", Value().set("intValue", std::to_string(m.gpu))));
  return Value()
      .set("timeUnixNano", fmt::format("{}000", m.at_us))
      .set("asDouble", otlp_number(m.value))
      .set("attributes", std::move(attributes));
}

std::string otlp_body(Value::Array metrics, const engine::RunRow& run) {
  Value::Array of_run{text_attribute("service.name", "rille"), text_attribute("service.version", RILLE_VERSION),
                      text_attribute("rille.run", run.id), text_attribute("rille.script", run.script)};
  Value scope;
  scope.set("scope", Value().set("name", "rille").set("version", RILLE_VERSION)).set("metrics", std::move(metrics));
  Value resource;
  resource.set("resource", Value().set("attributes", std::move(of_run)));
  resource.set("scopeMetrics", Value::Array{std::move(scope)});
  return to_plain_json(Value().set("resourceMetrics", Value::Array{std::move(resource)}));
}

}  // namespace

std::vector<std::string> metrics_otlp(const MetricList& all, const engine::RunRow& run) {
  std::vector<std::string> out;
  Value::Array metrics;
  std::size_t points = 0;
  for (const engine::MetricSeries& s : all)
    for (std::size_t from = 0; from < s.points.size();) {
      const std::size_t to = std::min(s.points.size(), from + otlp_points_max - points);
      Value::Array data;
      for (std::size_t i = from; i < to; ++i) data.push_back(otlp_point(s, s.points[i]));
      Value metric;
      metric.set("name", s.name).set("gauge", Value().set("dataPoints", std::move(data)));
      if (const char* unit = unit_of(s)) metric.set("unit", unit);
      metrics.push_back(std::move(metric));
      points += to - from;
      from = to;
      if (points < otlp_points_max) continue;
      out.push_back(otlp_body(std::exchange(metrics, {}), run));
      points = 0;
    }
  if (points > 0) out.push_back(otlp_body(std::move(metrics), run));
  return out;
}

}  // namespace rille::cli
