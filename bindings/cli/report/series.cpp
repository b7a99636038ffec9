// The series of a report: the run's metrics, and losses that trainings returned without keeping metrics.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "bindings/cli/report/report.hpp"
#include "bindings/cli/report/texts.hpp"
#include "runtime/workflow/engine/metrics.hpp"

namespace rille::cli {

namespace {

constexpr std::size_t drawn_points_max = 2000;

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

struct Point {
  double step = no_number, at = no_number, value = no_number;  // at: seconds since the run's start
};

struct Series {
  std::string name, source;
  std::vector<Point> points;
  bool of_machine = false;
};

Value finite(double number) { return std::isfinite(number) ? Value(number) : Value(); }

// Keeps of each piece the lowest and the highest point, so that no peak is lost; and the first and the last.
std::vector<Point> thinned(const std::vector<Point>& points) {
  if (points.size() <= drawn_points_max) return points;
  const std::size_t pieces = drawn_points_max / 2 - 1;
  std::vector<Point> out{points.front()};
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const std::size_t from = 1 + piece * (points.size() - 2) / pieces;
    const std::size_t to = 1 + (piece + 1) * (points.size() - 2) / pieces;
    const auto [low, high] = std::minmax_element(
        points.begin() + static_cast<std::ptrdiff_t>(from), points.begin() + static_cast<std::ptrdiff_t>(to),
        [](const Point& a, const Point& b) { return a.value < b.value; });  // NaN is below none
    out.push_back(*std::min(low, high));
    if (low != high) out.push_back(*std::max(low, high));
  }
  out.push_back(points.back());
  return out;
}

Value series_value(const Series& s) {
  Value::Array points;
  for (const Point& p : thinned(s.points)) {
    Value::Array one{finite(p.step), finite(p.at), finite(p.value)};
    points.push_back(std::move(one));
  }
  Value v;
  v.set("name", plain_text(s.name)).set("source", plain_text(s.source));
  v.set("count", static_cast<std::int64_t>(s.points.size())).set("points", std::move(points));
  if (s.of_machine) v.set("machine", true);
  return v;
}

// The losses that rille.train returned, if the entry is a call of it.
void add_losses(std::vector<Series>& out, const Value& entry) {
  const Value::Array* losses = entry["value"]["losses"].as_array();
  if (!losses) return;
  Series s{"loss", entry.text("key"), {}, false};
  for (const Value& l : *losses)
    if (const double* loss = l["loss"].as_number()) s.points.push_back({l.number("step"), no_number, *loss});
  if (!s.points.empty()) out.push_back(std::move(s));
}

}  // namespace

Result<Value> series_of(const App& app, const engine::RunRow& run, const std::vector<Value>& entries) {
  std::vector<Series> all;
  RILLE_TRY(auto kept, engine::read_metrics(app.engine->home() + "/runs/" + run.id));
  std::set<std::string> with_loss;
  for (const engine::MetricSeries& m : kept) {
    Series s{m.name, m.source, {}, m.of_machine};
    for (const agent::Metric& p : m.points)
      s.points.push_back({p.step.value_or(no_number), static_cast<double>(p.at_us - run.created_us) / 1e6, p.value});
    if (m.name == "loss") with_loss.insert(m.source);
    all.push_back(std::move(s));
  }
  for (const Value& e : entries)
    if (!with_loss.contains(e.text("key"))) add_losses(all, e);
  Value::Array out;
  for (const Series& s : all) out.push_back(series_value(s));
  return Value(std::move(out));
}

}  // namespace rille::cli
