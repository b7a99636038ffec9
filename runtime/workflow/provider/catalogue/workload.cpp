#include "runtime/workflow/provider/catalogue/workload.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/catalogue/rank.hpp"
#include "runtime/workflow/provider/gpus.hpp"

namespace rille::provider {

namespace {

constexpr std::string_view rank_name = "tokens_per_dollar";

// A GPU name that matches offers of the measured GPU model from every provider.
std::string key_of(const Measurement& m) {
  const GpuFacts* facts = known_gpu(m.gpu, m.gpu_memory_bytes);
  return facts ? gpu_name(*facts) : gpu_model(m.gpu);
}

// The GPU's rate in a training's precision; any precision but f32 and tf32 counts as bf16 (fp16 without bf16).
double rate(const GpuFacts& f, std::string_view precision) {
  if (precision == "f32") return f.fp32;
  if (precision == "tf32" && f.tf32 > 0) return f.tf32;
  return f.bf16 > 0 ? f.bf16 : f.fp16;
}

// Lua's {} arrives as an empty list
bool is_empty_list(const Value& v) { return v.as_array() && v.as_array()->empty(); }

Error unmeasured(const std::string& name, const std::vector<Measurement>& all) {
  std::vector<std::string> names;
  for (const Measurement& m : all)
    if (std::find(names.begin(), names.end(), m.workload) == names.end()) names.push_back(m.workload);
  std::string hint =
      "train once with rille.train { workload = .. } on a GPU that you rent, or say "
      "tokens_per_second = { H100 = 9500 }";
  if (const std::string near = did_you_mean(name, names); !near.empty()) hint = fmt::format("did you mean '{}'?", near);
  else if (!names.empty()) hint = fmt::format("measured are {}; {}", fmt::join(names, ", "), hint);
  return make_error(ErrorKind::invalid, fmt::format("workload = \"{}\": there are no measurements of that name", name),
                    hint);
}

}  // namespace

void Workload::leave_out(Value& options) {
  Value::Object* o = options.as_object();
  if (!o || (!o->contains("workload") && !o->contains("estimated"))) return;
  o->erase("workload");
  o->erase("estimated");
  if (!options["tokens_per_second"].as_object()) o->erase("rank");
}

// Uses measurement `m`, unless the user gave a number for this GPU or a newer measurement was taken before.
void Workload::take(const Measurement& m) {
  if (m.gpu.empty()) return;
  const std::string key = key_of(m);
  const auto says_it = [&m](const std::string& name) { return gpu_matches(m.gpu, m.gpu_memory_bytes, name); };
  if (std::any_of(given_.begin(), given_.end(), says_it) || !measured_.try_emplace(key).second) return;
  measured_[key] = known_gpu(m.gpu, m.gpu_memory_bytes);
  numbers_[key] = m.per_second;
}

// Estimates the speed of unmeasured GPUs as their FLOP/s times the median of measured speed per FLOP/s.
void Workload::estimate(const std::string& precision) {
  std::vector<double> worth;
  for (const auto& [key, facts] : measured_)
    if (facts && rate(*facts, precision) > 0) worth.push_back(numbers_[key] / rate(*facts, precision));
  if (worth.empty()) return;
  std::sort(worth.begin(), worth.end());
  const double median = (worth[(worth.size() - 1) / 2] + worth[worth.size() / 2]) / 2;
  for (const GpuFacts& row : gpu_facts()) {
    const auto memory_bytes = static_cast<std::int64_t>(row.memory_bytes);
    const auto covers_it = [&](const auto& entry) { return gpu_matches(row.model, memory_bytes, entry.first); };
    if (rate(row, precision) <= 0 || std::any_of(numbers_.begin(), numbers_.end(), covers_it)) continue;
    estimated_.insert(gpu_name(row));
  }
  for (const std::string& key : estimated_) numbers_[key] = median * rate(*gpu_facts(key), precision);
}

Result<Workload> Workload::resolve(const std::string& home, Value& options) {
  Workload out;
  const Value named = options["workload"], guess = options["estimated"];
  if (named.is_null() && guess.is_null()) return out;
  if (!named.as_string() || named.as_string()->empty())
    return make_error(ErrorKind::invalid, fmt::format("workload = {}: expected a name", named.to_json()),
                      "as in rille.train { workload = \"my-gpt\" }; `rille offers --measured` lists them");
  if (!guess.is_null() && !guess.as_bool())
    return make_error(ErrorKind::invalid, fmt::format("estimated = {}: expected true or false", guess.to_json()));
  if (!options["rank"].is_null() && options.text("rank") != rank_name)
    return make_error(ErrorKind::invalid, "workload does not apply to rank = " + options["rank"].to_json(),
                      "use rank = \"tokens_per_dollar\"");
  leave_out(options);
  if (const Value& own = options["tokens_per_second"]; !own.is_null() && !own.as_object() && !is_empty_list(own))
    return out;  // wrong type: OfferQuery::from_value reports the error
  out.name_ = *named.as_string();
  if (const Value::Object* own = options["tokens_per_second"].as_object())
    for (const auto& [name, number] : *own) {
      out.given_.insert(name);
      out.numbers_[name] = number.as_number() ? *number.as_number() : 0;
    }
  RILLE_TRY(const std::vector<Measurement> all, measurements(home));
  std::string precision;
  for (const Measurement& m : all) {
    if (m.workload != out.name_) continue;
    if (out.unit_.empty()) out.unit_ = m.unit, precision = m.precision;
    if (m.unit == out.unit_) out.take(m);
  }
  if (out.numbers_.empty() && out.unit_.empty()) return unmeasured(out.name_, all);
  if (out.numbers_.empty())
    return make_error(ErrorKind::invalid, fmt::format("workload = \"{}\" was measured on CPUs only", out.name_),
                      "train it on a GPU, or say tokens_per_second = { H100 = 9500 }");
  if (guess.as_bool() && *guess.as_bool()) out.estimate(precision);
  Value table = out.given_.empty() ? Value(Value::Object()) : options["tokens_per_second"];
  for (const auto& [name, number] : out.numbers_)
    if (!out.given_.contains(name)) table.set(name, number);
  options.set("rank", rank_name).set("tokens_per_second", std::move(table));
  return out;
}

std::string_view Workload::source_of(std::string_view gpu, std::int64_t memory_bytes) const {
  const std::string_view key = gpu.empty() ? "" : number_for(numbers_, gpu, memory_bytes);
  return key.empty()                ? "not measured"
         : given_.contains(key)     ? "given"
         : estimated_.contains(key) ? "estimated"
                                    : "measured";
}

void Workload::mark(Value& offers) const {
  if (!named() || !offers.as_array()) return;
  for (Value& offer : *offers.as_array())
    if (!offer["id"].is_null())  // a row without an id reports a provider's error
      offer.set("tokens_from", source_of(offer.text("gpu"), offer.integer("gpu_memory_bytes")));
}

}  // namespace rille::provider
