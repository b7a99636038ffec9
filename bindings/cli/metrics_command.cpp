// `rille metrics`: the metrics of a run, as a table or in a format that other programs read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bindings/cli/command.hpp"
#include "runtime/workflow/engine/metrics.hpp"

namespace rille::cli {

namespace {

using MetricList = std::vector<engine::MetricSeries>;

std::string metric_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return Value(value).to_json();
}

// One line per point: RFC 4180.
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

// The text format of Prometheus (prometheus.io/docs/instrumenting/exposition_formats): the last value of each series.
// GPU series bear the names of NVIDIA's DCGM exporter.
std::string metrics_prometheus(const MetricList& all, const std::string& run) {
  const auto label = [](const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
    return out;
  };
  struct Known {
    const char *name, *family, *help;
    double factor;
  };
  constexpr Known known[] = {
      {agent::gpu_utilization, "DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", 1},
      {agent::gpu_memory, "DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", 1.0 / (1 << 20)},
      {agent::gpu_power, "DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", 1},
      {nullptr, "rille_metric", "The last value of a metric of a run.", 1}};
  std::string out;
  for (const Known& k : known) {
    std::string lines;
    for (const engine::MetricSeries& s : all) {
      const bool of_gpu = s.of_machine && s.name != agent::cpu_utilization;
      if (k.name ? !s.of_machine || s.name != k.name : of_gpu) continue;
      const agent::Metric& last = s.points.back();
      std::string labels = fmt::format("run=\"{}\",source=\"{}\"", label(run), label(s.source));
      if (k.name) labels += fmt::format(",gpu=\"{}\"", last.gpu);
      else labels += fmt::format(",name=\"{}\"", label(s.name));
      lines += fmt::format("{}{{{}}} {}\n", k.family, labels, metric_number(last.value * k.factor));
    }
    if (!lines.empty()) out += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{2}", k.family, k.help, lines);
  }
  return out;
}

std::string metrics_table(const MetricList& all) {
  std::vector<std::vector<std::string>> rows{{"NAME", "SOURCE", "POINTS", "FIRST", "LAST", "LOWEST", "HIGHEST"}};
  const auto shown = [](double v) { return fmt::format("{:.6g}", v); };
  for (const engine::MetricSeries& s : all) {
    const auto [low, high] = std::minmax_element(s.points.begin(), s.points.end(),
                                                 [](const auto& a, const auto& b) { return a.value < b.value; });
    rows.push_back({s.name, s.source, fmt::format("{}", s.points.size()), shown(s.points.front().value),
                    shown(s.points.back().value), shown(low->value), shown(high->value)});
  }
  return format_table(rows);
}

struct MetricsCommand final : Command {
  std::string id, format = "table";
  void declare(Options& o) override {
    o.option("RUN", id, names_a_run).required();
    o.option("--format", format, "table, csv, jsonl or prometheus")
        .among({"table", "csv", "jsonl", "prometheus"})
        .shows_default();
  }
  Exit run(App& app) override;
};

Exit MetricsCommand::run(App& app) {
  Result<engine::RunRow> run = app.engine->run(id);
  if (!run) return fail(app, run.error());
  Result<MetricList> all = engine::read_metrics(app.engine->home() + "/runs/" + run->id);
  if (!all) return fail(app, all.error());
  if (app.json) {
    Value::Array out;
    for (const engine::MetricSeries& s : *all) {
      Value::Array points;
      for (const agent::Metric& m : s.points) {
        Value point;
        point.set("at_us", m.at_us).set("value", m.value);
        if (m.step) point.set("step", *m.step);
        points.push_back(std::move(point));
      }
      out.push_back(Value().set("name", s.name).set("source", s.source).set("points", std::move(points)));
    }
    app.terminal.out(Value(std::move(out)).to_json_pretty() + "\n");
    return Exit::ok;
  }
  if (format == "csv") app.terminal.out(metrics_csv(*all));
  else if (format == "jsonl") app.terminal.out(metrics_jsonl(*all));
  else if (format == "prometheus") app.terminal.out(metrics_prometheus(*all, run->id));
  else if (all->empty()) app.terminal.out("this run has no metrics: rille.metric(name, value), or rille.train\n");
  else app.terminal.out(metrics_table(*all));
  return Exit::ok;
}

const Registered<MetricsCommand> metrics_row({Group::look, "metrics", "numbers that a run kept, to show or to export"});

}  // namespace

}  // namespace rille::cli
