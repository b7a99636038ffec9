// `rille metrics`: the metrics of a run, as a table or in a format that other programs read.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bindings/cli/command.hpp"
#include "bindings/cli/metrics/formats.hpp"
#include "bindings/cli/metrics/send.hpp"
#include "runtime/core/net/redact.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::cli {

namespace {

constexpr const char* no_metrics = "this run has no metrics: rille.metric(name, value), or rille.train";

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

Value metrics_value(const MetricList& all) {
  Value::Array out;
  for (const engine::MetricSeries& s : all) {
    Value::Array points;
    for (const agent::Metric& m : s.points) {
      Value point;
      point.set("at_us", m.at_us).set("value", m.value);
      if (m.step) point.set("step", *m.step);
      points.push_back(std::move(point));
    }
    out.push_back(Value().set("name", s.name).set("source", s.source).set("points", std::move(points)));
  }
  return out;
}

struct MetricsCommand final : Command {
  std::string id, format = "table", tensorboard, otlp;
  void declare(Options& o) override {
    o.option("RUN", id, names_a_run).required();
    Option printed = o.option("--format", format, "table, csv, jsonl or prometheus")
                         .among({"table", "csv", "jsonl", "prometheus"})
                         .shows_default();
    Option files =
        o.option("--tensorboard", tensorboard, "write event files for TensorBoard below this folder instead");
    o.option("--otlp", otlp, "send them to this OpenTelemetry collector (OTLP/HTTP) instead")
        .excludes(files)
        .excludes(printed);
    files.excludes(printed);
  }
  Exit run(App& app) override;
  Exit print(App& app, const engine::RunRow& run, const MetricList& all) const;
  Exit write_files(App& app, const engine::RunRow& run, const MetricList& all) const;
  Exit send(App& app, const engine::RunRow& run, const MetricList& all) const;
};

Exit MetricsCommand::print(App& app, const engine::RunRow& run, const MetricList& all) const {
  std::string text;
  if (app.json) text = metrics_value(all).to_json_pretty() + "\n";
  else if (format == "csv") text = metrics_csv(all);
  else if (format == "jsonl") text = metrics_jsonl(all);
  else if (format == "table") text = all.empty() ? std::string(no_metrics) + "\n" : metrics_table(all);
  else {
    PrometheusText prometheus;
    prometheus.add_run(run.id, all);
    text = prometheus.text();
  }
  app.terminal.out(text);
  return Exit::ok;
}

Exit MetricsCommand::write_files(App& app, const engine::RunRow& run, const MetricList& all) const {
  Value::Array paths;
  for (const auto& [name, bytes] : metrics_tensorboard(all, run.id, run.created_us)) {
    const std::string path = tensorboard + "/" + name;
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
    if (failed) return fail(app, errno_error("create the folder of", path, failed.value()));
    if (Result<> written = store::write_file_atomic(path, bytes); !written) return fail(app, written.error());
    if (!app.json) app.terminal.note("wrote " + path);
    paths.push_back(path);
  }
  if (app.json) app.terminal.out(Value().set("files", std::move(paths)).to_json_pretty() + "\n");
  return Exit::ok;
}

Exit MetricsCommand::send(App& app, const engine::RunRow& run, const MetricList& all) const {
  const Result<std::int64_t> sent = run_blocking(*app.loop, send_otlp(*app.loop, otlp, metrics_otlp(all, run)));
  if (!sent) return fail(app, sent.error());
  std::int64_t points = 0;
  for (const engine::MetricSeries& s : all) points += static_cast<std::int64_t>(s.points.size());
  if (app.json) app.terminal.out(Value().set("points", points).set("requests", *sent).to_json_pretty() + "\n");
  else app.terminal.note(fmt::format("sent {} points to {}", points, net::redact_url(otlp)));
  return Exit::ok;
}

Exit MetricsCommand::run(App& app) {
  Result<engine::RunRow> run = app.engine->run(id);
  if (!run) return fail(app, run.error());
  Result<MetricList> all = engine::read_metrics(app.engine->home() + "/runs/" + run->id);
  if (!all) return fail(app, all.error());
  const bool exported = !tensorboard.empty() || !otlp.empty();
  if (exported && all->empty() && !app.json) app.terminal.note(no_metrics);
  if (!tensorboard.empty()) return write_files(app, *run, *all);
  if (!otlp.empty()) return send(app, *run, *all);
  return print(app, *run, *all);
}

const Registered<MetricsCommand> metrics_row({Group::look, "metrics", "numbers that a run kept, to show or to export"});

}  // namespace

}  // namespace rille::cli
