// Compiled: a function of tensors that is recorded once and replayed as a flat list of kernel calls on one planned
// arena.
//
// A call, as a binding makes it:
//   auto next = compiled.begin(inputs, key);              // key: plain numbers, train/eval mode, ...
//   if (*next == Compiled::Next::call) {                  // the function has to run now
//     ... results = fn(compiled.arguments()) ...          // on an error in it: compiled.abandon()
//     RILLE_TRY(outputs, compiled.end(results));
//   } else outputs = compiled.outputs();                  // replayed: the function did not run
//
// `key` consists of pieces divided by '|': settings ("autocast=bf16"), "t" for the next input, and plain arguments in
// their order, strings quoted. Any other text works too: the pieces only serve to name causes of a new recording.
//
// Per key (shapes, strides, types of the inputs, the text `key`, and which leaves have a .grad): call 1 runs
// the function uncaptured and notes its operations; call 2 traces it, refuses a sequence that differs (kind
// state, naming the first differing operation and its line), then captures and runs; from call 3 it is
// replayed. In check mode every call traces and compares. Results are bit-equal whichever way a call runs.
//
// While tracing: reading a value is a state error; a handle made inside and not returned is dead afterwards;
// writes to tensors made outside (parameters, optimiser state) are part of the plan; .grad left on a leaf
// becomes a fresh tensor at each call. Inputs are bound, not copied; outputs are fresh tensors that never
// change later. Random operations draw by (seed, step, place in the trace); each call advances the graph's
// random step by one. Threads: the graph's. A suspension of the fiber inside fn during call 2 must be refused
// by the binding (tracing()).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/compute/tensor/ops.hpp"
#include "runtime/compute/tensor/retrace.hpp"

namespace rille::tensor {

// What is computed again shortly before a late use instead of being kept until then: nothing; element-wise operations
// (an activation, for the gradient of the product that read it); these and norms. Less memory, more work, same bits.
enum class Recompute : std::uint8_t { none, elementwise, norms };

struct PlanInfo {
  std::size_t recorded = 0, calls = 0;  // number of operations, before and after dead ones are removed
  std::size_t arena_bytes = 0;          // temporaries, after planning
  std::size_t temporary_bytes = 0;      // the same without sharing
  std::string one_by_one;               // why groups are not one kernel each; "" if they are
  std::vector<ProfileRow> costs;        // of the calls, by operation and shape; without times
};

class Compiled {
 public:
  enum class Next { call, replayed };
  static constexpr std::size_t variant_limit = 32;  // keys kept; the least recently used is dropped

  // accumulate: this many consecutive calls are the parts of one batch (Graph::Modes::parts).
  // epilogues: on a CUDA device a linear product and its activation become one call of cuBLASLt. The activation sees
  // the sum before it is rounded, so results differ in their last bits.
  explicit Compiled(std::shared_ptr<Graph> graph, bool check = false, Recompute recompute = Recompute::none,
                    bool epilogues = false, int accumulate = 1);
  ~Compiled();
  Compiled(Compiled&&) noexcept;
  Compiled& operator=(Compiled&&) noexcept;

  // state: another compiled function is being called on this graph.
  Result<Next> begin(const std::vector<Tensor>& inputs, const std::string& key = {});
  const std::vector<Tensor>& arguments() const;  // after Next::call
  Result<std::vector<Tensor>> end(const std::vector<Tensor>& results);
  void abandon();                              // fn failed: discards this call
  const std::vector<Tensor>& outputs() const;  // after Next::replayed
  // Why there are recordings beyond the first.
  const Retraces& retraces() const;
  std::size_t variants() const;  // recordings kept now
  std::string take_warning();
  void succeed(Compiled& before);  // `before`: the same function on another device; continues its counts
  PlanInfo info() const;           // of the variant used last; zeros before capture

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rille::tensor
