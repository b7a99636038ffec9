#include "runtime/workflow/engine/measuring.hpp"

#include <cmath>
#include <filesystem>
#include <utility>

namespace rille::engine {

namespace {

constexpr std::size_t name_bytes_max = 100;

// Whether a reported number is usable. It comes from a user's script and may be anything.
bool is_sound(double n) { return std::isfinite(n) && n > 0 && n < 1e15; }

}  // namespace

std::string home_of(const std::string& run_folder) {
  return std::filesystem::path(run_folder).parent_path().parent_path().string();
}

Measuring::Measuring(std::string home, std::string run, std::string workload) : home_(std::move(home)) {
  newest_.run = std::move(run);
  newest_.workload = std::move(workload);
}

Measuring::~Measuring() { (void)settle(); }

void Measuring::on(const lease::Lease& lease) {
  (void)settle();
  machine_ = lease.request.offer;
  newest_.steps = kept_steps_ = 0;
  newest_.provider = machine_.provider, newest_.offer = machine_.id, newest_.region = machine_.region;
  newest_.spot = machine_.spot;
  newest_.price_micros_per_hour = lease.price_micros_per_hour;
}

Result<> Measuring::hear(const Value& progress, std::int64_t now_us) {
  const Value& told = progress["measured"];
  if (!told.as_object() || !is_sound(told.number("rate")) || !is_sound(told.number("steps"))) return {};
  const std::int64_t steps = told.integer("steps");
  if (steps == newest_.steps) return {};
  if (steps < newest_.steps) {  // the number of steps fell: the call's process was restarted
    RILLE_CHECK(settle());
    kept_steps_ = 0;
  }
  newest_.steps = steps;
  newest_.at_us = now_us;
  newest_.per_second = told.number("rate");
  newest_.batch = is_sound(told.number("batch")) ? told.number("batch") : 0;
  newest_.params = is_sound(told.number("params")) ? told.integer("params") : 0;
  newest_.precision = told.text("precision").substr(0, name_bytes_max);
  newest_.unit = told.text("unit") == "samples" ? "samples" : "tokens";
  if (const std::string name = told.text("workload"); !name.empty()) newest_.workload = name.substr(0, name_bytes_max);
  // A measurement belongs to the GPU only if it was made on the GPU, not on the machine's CPU.
  const bool on_gpu = told.text("device") != "cpu";
  newest_.gpu = on_gpu ? machine_.gpu : "";
  newest_.gpu_count = on_gpu ? machine_.gpu_count : 0;
  newest_.gpu_memory_bytes = on_gpu ? machine_.gpu_memory_bytes : 0;
  if (kept_steps_ > 0 && steps < 2 * kept_steps_) return {};
  return settle();
}

Result<> Measuring::settle() {
  if (newest_.steps <= kept_steps_ || newest_.workload.empty()) return {};
  kept_steps_ = newest_.steps;
  Result<> kept = provider::keep(home_, newest_);
  if (kept || std::exchange(failed_, true)) return {};
  return kept;
}

}  // namespace rille::engine
