// "workload" in a query: ranks offers by the measured speed of trainings of that name, per dollar. It is resolved into
// the query's tokens_per_second, so the ranking itself does not know workloads. Resolve it after the query is
// journaled: a measurement between a run and its resume must not change the journaled query.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "runtime/workflow/provider/catalogue/measured.hpp"
#include "runtime/workflow/provider/gpu_facts.hpp"

namespace rille::provider {

class Workload {
 public:
  Workload() = default;  // for a query without a workload
  // Removes `workload` and `estimated` from the options of a query or a rent, and adds the newest measurement of each
  // GPU model to tokens_per_second. The user's own entries there take precedence. estimated = true: other models are
  // added in proportion to their TFLOPs. invalid: no measurement of that name; no name; another rank. integrity: see
  // measurements().
  static Result<Workload> resolve(const std::string& home, Value& options);
  // For simulations, which have no measurements: ranks by price instead.
  static void leave_out(Value& options);

  bool named() const { return !name_.empty(); }
  const std::string& unit() const { return unit_; }
  // The source of a GPU's number: "given", "measured", "estimated", "not measured".
  std::string_view source_of(std::string_view gpu, std::int64_t memory_bytes) const;
  // Adds it to each offer of a list, as `tokens_from`. Does nothing without a workload.
  void mark(Value& offers) const;

 private:
  void take(const Measurement& m);
  void estimate(const std::string& precision);

  std::string name_, unit_;
  std::map<std::string, double> numbers_;  // per GPU, by model
  std::set<std::string, std::less<>> given_, estimated_;
  std::map<std::string, const GpuFacts*> measured_;  // null: a GPU in no table
};

}  // namespace rille::provider
