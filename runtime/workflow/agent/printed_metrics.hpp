// PrintedMetrics: metrics that a program reports by lines of its output, which no library has to write:
//   rille.metric loss=2.31 lr=0.001 step=120
// Words are NAME=NUMBER; `step` is the step of the others. A line that is not of this form is output and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rille::agent {

class PrintedMetrics {
 public:
  // The metrics of the lines that end within these bytes, as lines of metric.hpp. The output comes in any pieces. A
  // carriage return ends a line as well: a progress bar may stand before it.
  std::string add(std::string_view bytes, std::int64_t now_us);

 private:
  std::string line_;       // the beginning of a line whose end is still to come
  bool too_long_ = false;  // that line has exceeded metric_line_bytes_max
};

}  // namespace rille::agent
