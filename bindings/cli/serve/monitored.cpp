// /metrics: what a Prometheus reads.
#include <fmt/format.h>

#include <filesystem>

#include "bindings/cli/runs.hpp"
#include "bindings/cli/serve/site.hpp"

namespace rille::cli {

namespace {

constexpr int counted_runs_max = 1'000'000;
// A monitor that asks every minute or two still reads the last values of a run that has just ended.
constexpr std::int64_t remembered_us = 300'000'000;

void add_amounts(PrometheusText& text, const char* family, const char* help, PrometheusText::Labels labels,
                 const lease::Amounts& amounts) {
  labels.emplace_back("currency", "");
  for (const auto& [currency, micros] : amounts) {
    labels.back().second = currency;
    text.add(family, help, labels, static_cast<double>(micros) / 1e6);
  }
}

void add_leases(PrometheusText& text, const std::vector<lease::Lease>& leases, std::int64_t now_us) {
  std::map<std::pair<std::string, std::string>, int> open;
  lease::Amounts spent{{"USD", 0}}, rate{{"USD", 0}};
  int unpriced = 0;
  for (const lease::Lease& l : leases) {
    lease::add_to(spent, l.costs(now_us));
    if (!l.billable()) continue;
    ++open[{l.provider, l.state}];
    const lease::Price price = l.price();
    if (price.micros < 0) ++unpriced;
    else lease::add_to(rate, {{price.currency, price.micros}});
  }
  for (const auto& [of, count] : open)
    text.add("rille_leases", "Leases that are not released, by provider and state.",
             {{"provider", of.first}, {"state", of.second}}, count);
  add_amounts(text, "rille_spent", "What all leases of this home have cost, with estimates where no bill is known.", {},
              spent);
  add_amounts(text, "rille_price_per_hour", "What the leases that are not released cost in an hour.", {}, rate);
  text.add("rille_leases_unpriced", "Leases that are not released and whose price is unknown.", {}, unpriced);
}

}  // namespace

const MetricList& Site::metrics_of(const std::string& run) {
  const std::string folder = app_.engine->home() + "/runs/" + run;
  std::string files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/metrics", none))
    files += fmt::format("{} {}\n", entry.path().string(), entry.file_size(none));
  Read& read = metrics_[run];
  if (read.files == files) return read.last;
  read.files = files;
  read.last.clear();
  Result<MetricList> all = engine::read_metrics(folder);
  if (!all) return read.last;  // a damaged file: the run's page says so
  for (engine::MetricSeries& s : *all) {
    s.points = {s.points.back()};
    read.last.push_back(std::move(s));
  }
  return read.last;
}

Result<> Site::add_runs(PrometheusText& text) {
  const std::int64_t now_us = app_.loop->clock().wall_us();
  RILLE_TRY(const std::vector<engine::RunRow> runs, app_.engine->runs(counted_runs_max, true));
  std::map<std::string, int> states;
  for (const char* state :
       {"running", "interrupted", "suspended", "done", "failed", "cancelled", "cleanup", "diverged"})
    states[state] = 0;
  std::map<std::string, Read> named;
  for (const engine::RunRow& run : runs) {
    ++states[shown_state(app_, run)];
    if (run.ended_us && run.ended_us < now_us - remembered_us) continue;
    RILLE_TRY(const std::vector<lease::Lease> leases, app_.engine->leases().of_run(run.id));
    lease::Amounts spent{{"USD", 0}};
    for (const lease::Lease& l : leases) lease::add_to(spent, l.costs(now_us));
    add_amounts(text, "rille_run_spent", "What a run's leases have cost.", {{"run", run.id}}, spent);
    text.add_run(run.id, metrics_of(run.id));
    named[run.id] = metrics_[run.id];
  }
  metrics_ = std::move(named);
  for (const auto& [state, count] : states) text.add("rille_runs", "Runs by state.", {{"state", state}}, count);
  return {};
}

Result<std::string> Site::monitored() {
  PrometheusText text;
  RILLE_CHECK(add_runs(text));
  RILLE_TRY(const std::vector<lease::Lease> leases, app_.engine->leases().all(true));
  add_leases(text, leases, app_.loop->clock().wall_us());
  return text.text();
}

}  // namespace rille::cli
