#include "runtime/workflow/agent/usage.hpp"

#include <utility>

#include "runtime/core/loop/thread_job.hpp"
#include "runtime/workflow/agent/metric.hpp"

namespace rille::agent {

namespace {
constexpr std::int64_t reading_every_us = 1'000'000;
}  // namespace

struct Usage::Gpus {
  std::optional<telemetry::GpuTelemetry> cards;
  bool none = false;  // true: the machine has no GPU driver
  bool reading = false;
  std::optional<double> busy;  // the latest GPU utilization, 0 to 1
  // Of each GPU, when all was read last. readings_next is of the reading thread.
  Value::Array readings, readings_next;
  std::int64_t read_us = 0;  // when that was

  Result<double> read(bool all) {
    if (!cards) {
      RILLE_TRY(telemetry::GpuTelemetry opened, telemetry::GpuTelemetry::open());
      cards.emplace(std::move(opened));
    }
    if (all)
      if (Result<Value::Array> each = cards->read()) readings_next = std::move(*each);
    return cards->busy();
  }
};

Usage::Usage(Loop& loop) : loop_(loop), gpus_(std::make_shared<Gpus>()) {}

Task<void> Usage::read_gpus(Loop& loop, std::shared_ptr<Gpus> gpus, std::int64_t wall_us) {
  gpus->reading = true;
  const bool all = wall_us - gpus->read_us >= machine_metrics_every_us || wall_us < gpus->read_us;
  if (all) gpus->read_us = wall_us;
  auto job = [gpus, all] { return gpus->read(all); };
  Result<double> busy = co_await thread_job(loop, std::move(job));
  gpus->reading = false;
  if (all) gpus->readings = std::exchange(gpus->readings_next, {});
  gpus->none = !gpus->cards;
  gpus->busy = busy ? std::optional<double>(*busy) : std::nullopt;
}

void Usage::look(std::int64_t wall_us) {
  while (!readings_.empty() && (wall_us - readings_.front().at_us > window_us || wall_us < readings_.back().at_us))
    readings_.pop_front();  // older than the window, or all readings if the clock was set back
  if (!readings_.empty() && wall_us - readings_.back().at_us < reading_every_us) return;
  if (!gpus_->none && !gpus_->reading) loop_.spawn(read_gpus(loop_, gpus_, wall_us));
  cpu_now_ = cpu_.read();
  const double* percent = cpu_now_["cpu_percent"].as_number();
  if (gpus_->busy) readings_.push_back({wall_us, *gpus_->busy});
  else if (percent) readings_.push_back({wall_us, *percent / 100});
}

std::optional<double> Usage::utilization() const {
  if (readings_.empty()) return std::nullopt;
  double sum = 0;
  for (const Reading& r : readings_) sum += r.busy;
  return sum / static_cast<double>(readings_.size());
}

std::string Usage::metric_lines(std::int64_t wall_us) const {
  std::string out;
  const auto add = [&](const Value& reading, const char* member, const char* name, std::int64_t gpu) {
    const double* number = reading[member].as_number();
    if (!number) return;
    Metric m;
    m.name = name, m.value = *number, m.at_us = wall_us, m.gpu = gpu;
    out += metric_line(m);
  };
  add(cpu_now_, "cpu_percent", cpu_utilization, -1);
  std::int64_t number = 0;
  for (const Value& reading : gpus_->readings) {
    const std::int64_t gpu = number++;
    add(reading, "gpu_percent", gpu_utilization, gpu);
    add(reading, "memory_used_bytes", gpu_memory, gpu);
    add(reading, "power_watts", gpu_power, gpu);
  }
  return out;
}

Value Usage::to_value() const {
  Value v(Value::Object{});
  if (auto mean = utilization()) v.set("utilization", *mean);
  if (gpus_->busy) v.set("gpu_percent", *gpus_->busy * 100);
  for (const char* member : {"cpu_percent", "memory_used_bytes", "memory_total_bytes"})
    if (!cpu_now_[member].is_null()) v.set(member, cpu_now_[member]);
  return v;
}

}  // namespace rille::agent
