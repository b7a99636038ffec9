// `rille offers --measured`: prints measured training speeds, by GPU.
#include <fmt/format.h>

#include <algorithm>

#include "bindings/cli/offers.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/catalogue/measured.hpp"

namespace rille::cli {

namespace {

using provider::Measurement;

// Formats a count: 124000000 as "124M"; "-" if unknown.
std::string many(double n) {
  if (n <= 0) return "-";
  for (const auto& [size, letter] : {std::pair(1e12, 'T'), std::pair(1e9, 'B'), std::pair(1e6, 'M')})
    if (n >= size) return fmt::format("{:.3g}{}", n / size, letter);
  return fmt::format("{:.0f}", n);
}

std::string measured_table(const std::vector<Measurement>& list) {
  std::vector<std::vector<std::string>> rows{{"WORKLOAD", "GPU", "COUNT", "FROM", "PRECISION", "BATCH", "PARAMS",
                                              "STEPS", "PER SECOND AND GPU", "PER $", "MEASURED"}};
  for (const Measurement& m : list)
    rows.push_back({m.workload, m.gpu.empty() ? "cpu" : m.gpu, fmt::format("{}", m.gpu_count),
                    m.provider + " " + m.offer, m.precision.empty() ? "-" : m.precision, many(m.batch),
                    many(static_cast<double>(m.params)), fmt::format("{}", m.steps),
                    fmt::format("{:.4g} {}", m.per_second, m.unit), many(m.per_dollar()), format_utc(m.at_us)});
  return format_table(rows);
}

}  // namespace

Exit print_measured(App& app, const std::string& workload) {
  Result<std::vector<Measurement>> list = provider::measurements(app.home);
  if (!list) return fail(app, list.error());
  std::erase_if(*list, [&](const Measurement& m) { return !workload.empty() && m.workload != workload; });
  if (app.json) {
    Value::Array all;
    for (const Measurement& m : *list) all.push_back(m.to_value());
    app.terminal.out(Value(std::move(all)).to_json_pretty() + "\n");
    return Exit::ok;
  }
  app.terminal.out(list->empty() ? "nothing was measured yet: rille.train on a rented machine measures itself\n"
                                 : measured_table(*list));
  return Exit::ok;
}

}  // namespace rille::cli
