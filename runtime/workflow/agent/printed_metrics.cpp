#include "runtime/workflow/agent/printed_metrics.hpp"

#include <charconv>
#include <cmath>
#include <vector>

#include "runtime/core/base/text.hpp"
#include "runtime/workflow/agent/metric.hpp"

namespace rille::agent {

namespace {

constexpr std::string_view metric_word = "rille.metric ";

bool read_word(std::string_view word, std::vector<Metric>& metrics, std::optional<double>& step) {
  const std::size_t sign = word.rfind('=');
  if (sign == word.npos) return false;
  const char* const end = word.data() + word.size();
  double value = 0;
  const auto [at, failed] = std::from_chars(word.data() + sign + 1, end, value);
  if (failed != std::errc() || at != end) return false;
  const std::string_view name = word.substr(0, sign);
  if (name == "step") {
    step = value;
    return std::isfinite(value);
  }
  Metric m;
  m.name = name, m.value = value;
  metrics.push_back(std::move(m));
  return is_metric_name(name);
}

std::string metrics_in(std::string_view line, std::int64_t now_us) {
  if (!line.starts_with(metric_word)) return {};
  std::vector<Metric> metrics;
  std::optional<double> step;
  for (std::string rest = trimmed(line.substr(metric_word.size())); !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    if (!read_word(std::string_view(rest).substr(0, end), metrics, step)) return {};
    rest = trimmed(std::string_view(rest).substr(end));
  }
  std::string out;
  for (Metric& m : metrics) {
    m.at_us = now_us, m.step = step;
    out += metric_line(m);
  }
  return out;
}

}  // namespace

std::string PrintedMetrics::add(std::string_view bytes, std::int64_t now_us) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\r\n");
    const std::string_view piece = bytes.substr(0, end);
    too_long_ = too_long_ || line_.size() + piece.size() > metric_line_bytes_max;
    if (too_long_) line_.clear();
    else line_ += piece;
    if (end == bytes.npos) break;
    out += metrics_in(line_, now_us);
    line_.clear();
    too_long_ = false;
    bytes.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace rille::agent
