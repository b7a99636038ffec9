// "workload" in a query: offers ranked by what trainings of that name were measured to do, per dollar. It becomes the
// query's table tokens_per_second, so who ranks needs to know nothing of it. Not to be resolved before a query is
// journaled: what is measured between a run and its resumption must not make another question of it.
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
  Workload() = default;  // of a query that names none
  // Takes `workload` and `estimated` out of a query's options (also those of a rent), and puts into their
  // tokens_per_second what was measured in this home: of each GPU model the newest. What stands there already is the
  // user's own and stays. estimated = true: the other models by their TFLOPs, in proportion.
  // invalid: nothing was measured under that name; no name; another rank. integrity: see measurements().
  static Result<Workload> resolve(const std::string& home, Value& options);
  // The same where nobody measures, in a rehearsal: what goes by the workload goes by the price.
  static void leave_out(Value& options);

  bool named() const { return !name_.empty(); }
  const std::string& unit() const { return unit_; }
  // Where the number for a GPU comes from: "given", "measured", "estimated", "not measured".
  std::string_view source_of(std::string_view gpu, std::int64_t memory_bytes) const;
  // Adds that to each offer of a list, as `tokens_from`. Does nothing where no workload was named.
  void mark(Value& offers) const;

 private:
  void take(const Measurement& m);
  void estimate(const std::string& precision);

  std::string name_, unit_;
  std::map<std::string, double> numbers_;  // of one GPU, by its name
  std::set<std::string, std::less<>> given_, estimated_;
  std::map<std::string, const GpuFacts*> measured_;  // null: a GPU that no table has
};

}  // namespace rille::provider
