// "workload" in a query: ranks offers by the measured speed of trainings of that name, per dollar. The name is replaced
// by measured speeds in the query's tokens_per_second, so the ranking does not know workloads. Call resolve() after the
// query is journaled: a measurement made before a run is resumed must not change the journaled query.
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
  Workload() = default;  // the query names no workload
  // Removes `workload` and `estimated` from the options of a query or a rent, and adds the newest measurement of each
  // GPU model to tokens_per_second. Entries that the user wrote there take precedence. estimated = true: GPU models
  // without a measurement get a speed in proportion to their TFLOPs. Error invalid: no measurement of that workload; no
  // name; a rank other than tokens_per_dollar. integrity: see measurements().
  static Result<Workload> resolve(const std::string& home, Value& options);
  // For simulations, which have no measurements: removes the workload from `options` and ranks by price.
  static void leave_out(Value& options);

  bool named() const { return !name_.empty(); }
  const std::string& unit() const { return unit_; }
  // Where a GPU's speed is from: "given" (by the user), "measured", "estimated", or "not measured".
  std::string_view source_of(std::string_view gpu, std::int64_t memory_bytes) const;
  // Adds the field `tokens_from`, the result of source_of(), to each offer of a list. Does nothing without a workload.
  void mark(Value& offers) const;

 private:
  void take(const Measurement& m);
  void estimate(const std::string& precision);

  std::string name_, unit_;
  std::map<std::string, double> numbers_;  // tokens or samples per second of one GPU, by GPU model
  std::set<std::string, std::less<>> given_, estimated_;
  std::map<std::string, const GpuFacts*> measured_;  // by GPU model; null: a GPU that gpu_facts() does not know
};

}  // namespace rille::provider
