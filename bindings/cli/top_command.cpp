// `rille top`: prints the utilization of this machine's CPU and GPUs at an interval, one line per device.
#include <fmt/format.h>

#include <ctime>

#include "bindings/cli/command.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/telemetry/telemetry.hpp"

namespace rille::cli {

namespace {

constexpr int lines_per_heading = 30;

struct Column {
  const char *title, *unit, *member;
  double factor;
  int width, decimals;
};
constexpr Column columns[] = {{"power", "W", "power_watts", 1, 6, 0},
                              {"temp", "C", "temperature_celsius", 1, 5, 0},
                              {"mtemp", "C", "memory_temperature_celsius", 1, 6, 0},
                              {"sm", "%", "gpu_percent", 1, 5, 0},
                              {"mem", "%", "memory_percent", 1, 5, 0},
                              {"used", "GB", "memory_used_bytes", 1e-9, 7, 1},
                              {"of", "GB", "memory_total_bytes", 1e-9, 7, 1},
                              {"smclk", "MHz", "sm_clock_mhz", 1, 6, 0},
                              {"memclk", "MHz", "memory_clock_mhz", 1, 7, 0},
                              {"ecc", "errors", "ecc_uncorrected", 1, 7, 0}};

std::string heading() {
  std::string titles = fmt::format("{:<5}", "gpu"), units = fmt::format("{:<5}", "");
  for (const Column& c : columns) {
    titles += fmt::format("{:>{}}", c.title, c.width);
    units += fmt::format("{:>{}}", c.unit, c.width);
  }
  return titles + "  notes\n" + units + "\n";
}

// Lists a reading's warnings: "XID 79, power_cap".
std::string notes_of(const Value& reading) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  if (reading.boolean("lost")) add("lost: it has fallen off its bus");
  if (const auto* xids = reading["xids"].as_array())
    for (const Value& x : *xids) add(fmt::format("XID {:.0f}", x.as_number() ? *x.as_number() : 0));
  if (const auto* reasons = reading["slowdowns"].as_array())
    for (const Value& r : *reasons) add(r.as_string() ? *r.as_string() : "");
  return out;
}

std::string reading_line(const std::string& name, const Value& reading) {
  std::string out = fmt::format("{:<5}", name);
  for (const Column& c : columns) {
    const double* n = reading[c.member].as_number();
    out += n ? fmt::format("{:>{}.{}f}", *n * c.factor, c.width, c.decimals) : fmt::format("{:>{}}", "-", c.width);
  }
  const std::string notes = notes_of(reading);
  return out + (notes.empty() ? "" : "  " + notes) + "\n";
}

struct TopCommand final : Command {
  std::string interval = "1s";
  int count = 0;  // number of readings; 0: until the user presses Ctrl-C
  void declare(Options& o) override {
    o.option("--interval", interval, "time between two readings").shows_default();
    o.option("--count", count, "number of readings; without it, until Ctrl-C").at_least(1);
  }
  Exit run(App& app) override;
};

Exit TopCommand::run(App& app) {
  auto interval_ms = parse_duration_ms(interval);
  if (!interval_ms) return fail_usage(app, interval_ms.error());
  telemetry::CpuTelemetry processor;
  auto gpus = telemetry::GpuTelemetry::open();
  if (!gpus && !app.json) app.terminal.note(fmt::format("no GPUs: {}", gpus.error().message));
  int until_heading = 0;
  for (int n = 0; count == 0 || n < count; ++n) {
    run_blocking(*app.loop, sleep_for(*app.loop, n == 0 ? std::min<std::int64_t>(*interval_ms, 200) : *interval_ms))
        .ok();
    Value cpu = processor.read();
    Value::Array cards;
    if (gpus) {
      auto read = gpus->read();
      if (!read) return fail(app, read.error());
      cards = std::move(*read);
    }
    if (app.json) {
      Value line;
      line.set("time_us", system_clock().wall_us()).set("cpu", std::move(cpu)).set("gpus", std::move(cards));
      app.terminal.out(line.to_json() + "\n");
      continue;
    }
    if (until_heading <= 0) {
      app.terminal.out(heading());
      until_heading = lines_per_heading;
    }
    // The CPU's utilization is printed in the column of the GPUs' utilization.
    if (const double* percent = cpu["cpu_percent"].as_number()) cpu.set("gpu_percent", *percent);
    app.terminal.out(reading_line("cpu", cpu));
    for (const Value& card : cards) app.terminal.out(reading_line(card.text("index"), card));
    until_heading -= 1 + static_cast<int>(cards.size());
  }
  return Exit::ok;
}

const Registered<TopCommand> top_row({Group::look, "top", "load of this machine's processors and GPUs, at intervals",
                                      Opens::nothing});

}  // namespace

}  // namespace rille::cli
