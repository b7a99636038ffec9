// Compiled: a function of tensors that is recorded once and then replayed as a flat list of kernel calls. The
// temporaries of all calls share one planned block of memory, the arena.
//
// A call, as a binding makes it:
//   auto next = compiled.begin(inputs, key);              // key: plain numbers, train/eval mode, ...
//   if (*next == Compiled::Next::call) {                  // the function has to run now
//     ... results = fn(compiled.arguments()) ...          // on an error in it: compiled.abandon()
//     RILLE_TRY(outputs, compiled.end(results));
//   } else outputs = compiled.outputs();                  // replayed: the function did not run
//
// `key` consists of pieces divided by '|': settings ("autocast=bf16"), "t" for the next tensor argument, and the plain
// arguments in order, strings quoted. Any other text works too: the pieces only serve to name why a call is recorded
// again.
//
// Each key (shapes, strides and types of the inputs, the text `key`, and which leaves have a .grad) goes through three
// stages. Call 1 runs the function as it is and notes its operations. Call 2 traces it, refuses a sequence of
// operations that differs (error state, naming the first differing operation and its line), then captures and runs the
// plan. From call 3 the plan is replayed. In check mode every call traces and compares. All stages give bit-equal
// results.
//
// While tracing: reading a value is a state error; a tensor made inside and not returned is unusable afterwards;
// writes to tensors made outside (parameters, optimiser state) are part of the plan; a .grad that the function sets is
// a new tensor at each call. Inputs are bound, not copied; outputs are new tensors that later calls never change.
// Random operations draw by (seed, step, position in the trace); each call advances the graph's random step by one.
// Threads: the graph's. If the fiber would suspend inside fn during call 2, the binding must refuse it
// (Graph::tracing()).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/compute/tensor/ops.hpp"
#include "runtime/compute/tensor/retrace.hpp"

namespace rille::tensor {

// Which values are computed again shortly before a late use instead of being kept until then. none: no value;
// elementwise: results of element-wise operations (such as activations); norms: these and the results of layer_norm and
// rms_norm. Saves memory and adds work; results keep their bits.
enum class Recompute : std::uint8_t { none, elementwise, norms };

struct PlanInfo {
  std::size_t recorded = 0, calls = 0;  // operations in the trace; kernel calls left after removal and fusion
  std::size_t arena_bytes = 0;          // memory for temporaries after planning
  std::size_t temporary_bytes = 0;      // sum of the temporaries' sizes, without sharing memory
  std::string one_by_one;               // why element-wise groups are not fused into one kernel; "" if they are
  std::vector<ProfileRow> costs;        // bytes and FLOPs of the calls, by operation and shape; times are zero
};

class Compiled {
 public:
  enum class Next { call, replayed };
  static constexpr std::size_t variant_limit = 32;  // recordings kept; the least recently used one is dropped

  // accumulate: so many consecutive calls are the parts of one batch (Graph::Modes::parts).
  // epilogues: on a CUDA device a linear product and the activation that follows become one call of cuBLASLt. It
  // applies the activation before rounding the sum, so results differ in the last bits.
  explicit Compiled(std::shared_ptr<Graph> graph, bool check = false, Recompute recompute = Recompute::none,
                    bool epilogues = false, int accumulate = 1);
  ~Compiled();
  Compiled(Compiled&&) noexcept;
  Compiled& operator=(Compiled&&) noexcept;

  // Error state: another compiled function is being called on this graph.
  Result<Next> begin(const std::vector<Tensor>& inputs, const std::string& key = {});
  const std::vector<Tensor>& arguments() const;  // valid after begin() returned Next::call
  Result<std::vector<Tensor>> end(const std::vector<Tensor>& results);
  void abandon();                              // fn failed: discards this call
  const std::vector<Tensor>& outputs() const;  // valid after begin() returned Next::replayed
  // The recordings after the first one, with their causes.
  const Retraces& retraces() const;
  std::size_t variants() const;  // number of recordings kept now
  std::string take_warning();
  void succeed(Compiled& before);  // continues the call counts of `before`, the same function on another device
  PlanInfo info() const;           // of the recording used last; all zero before a plan was made

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rille::tensor
