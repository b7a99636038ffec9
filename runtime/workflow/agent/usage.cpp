#include "runtime/workflow/agent/usage.hpp"

#include "runtime/core/loop/thread_job.hpp"

namespace rille::agent {

namespace {
constexpr std::int64_t reading_every_us = 1'000'000;
}  // namespace

struct Usage::Gpus {
  std::optional<telemetry::GpuTelemetry> cards;
  bool none = false;  // true: the machine has no GPU driver
  bool reading = false;
  std::optional<double> busy;  // the latest GPU utilization, 0 to 1

  Result<double> read() {
    if (!cards) {
      RILLE_TRY(telemetry::GpuTelemetry opened, telemetry::GpuTelemetry::open());
      cards.emplace(std::move(opened));
    }
    return cards->busy();
  }
};

Usage::Usage(Loop& loop) : loop_(loop), gpus_(std::make_shared<Gpus>()) {}

Task<void> Usage::read_gpus(Loop& loop, std::shared_ptr<Gpus> gpus) {
  gpus->reading = true;
  auto job = [gpus] { return gpus->read(); };
  Result<double> busy = co_await thread_job(loop, std::move(job));
  gpus->reading = false;
  gpus->none = !gpus->cards;
  gpus->busy = busy ? std::optional<double>(*busy) : std::nullopt;
}

void Usage::look(std::int64_t wall_us) {
  while (!readings_.empty() && (wall_us - readings_.front().at_us > window_us || wall_us < readings_.back().at_us))
    readings_.pop_front();  // older than the window, or all readings if the clock was set back
  if (!readings_.empty() && wall_us - readings_.back().at_us < reading_every_us) return;
  if (!gpus_->none && !gpus_->reading) loop_.spawn(read_gpus(loop_, gpus_));
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

Value Usage::to_value() const {
  Value v(Value::Object{});
  if (auto mean = utilization()) v.set("utilization", *mean);
  if (gpus_->busy) v.set("gpu_percent", *gpus_->busy * 100);
  for (const char* member : {"cpu_percent", "memory_used_bytes", "memory_total_bytes"})
    if (!cpu_now_[member].is_null()) v.set(member, cpu_now_[member]);
  return v;
}

}  // namespace rille::agent
