// Steps: the durable operations within a run. An operation is answered from the journal, or executed once and recorded.
// Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/base/guest.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/engine/step.hpp"

namespace rille::engine {

// A durable operation as it is recorded: its kind ("step", "rent", "call", ..), its name, and its arguments.
struct Operation {
  // Not an aggregate: GCC 12 destroys brace-made temporaries in a co_await expression twice (see loop/task.hpp).
  Operation() = default;
  Operation(std::string k, std::string n, Value a, std::string s)
      : kind(std::move(k)), name(std::move(n)), args(std::move(a)), source(std::move(s)) {}
  std::string kind, name;
  Value args;          // the entry stores a hash of them; other arguments on replay are a divergence
  std::string source;  // source line such as "train.lua:12", for messages
};

// Continues the seed of a step's random numbers: fiber's seed, then the step's key, "#" and the attempt.
inline std::uint64_t mix_seed(std::uint64_t seed, std::string_view text) {
  for (char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return seed;
}

class Steps {
 public:
  virtual ~Steps() = default;
  // The guest calls in this order: step_begin; the probe and step_probed if the ticket asks for a probe; the body;
  // step_end; then the body and step_end again while the outcome asks for it. A durable operation in the body that the
  // step's options do not allow fails with `state` (see step.hpp).
  virtual Async<StepTicket> step_begin(FiberId fiber, Operation step, StepOptions options) = 0;
  virtual Async<StepOutcome> step_probed(FiberId fiber, StepTicket ticket, Result<ProbeAnswer> answer) = 0;
  virtual Async<StepOutcome> step_end(FiberId fiber, StepTicket ticket, Result<Value> body) = 0;
  // Keeps `progress` for the body's next attempt. At most once per second, the latest heartbeat is written.
  virtual Result<> step_heartbeat(FiberId fiber, const StepTicket& ticket, Value progress) = 0;
  // The fast path of a step without options: no coroutine, and one suspension (plain_steps.cpp). plain_begin returns
  // false, without effect, if the step is recorded or must wait for the replay: then call step_begin. `seed` seeds the
  // body's random numbers. After true, the guest runs the body and calls plain_end; Guest::plain_done or Guest::cancel
  // reports the outcome. If the body fails or plain_end returns false, plain_ticket turns the step into one as from
  // step_begin.
  virtual bool plain_begin(FiberId fiber, std::string_view name, std::string_view source, std::uint64_t& seed) = 0;
  virtual void plain_waits(FiberId fiber) = 0;  // call when the body suspends: records that the step has begun
  virtual bool plain_end(FiberId fiber, const Value& result) = 0;
  virtual StepTicket plain_ticket(FiberId fiber) = 0;
  virtual Async<> sleep(FiberId fiber, std::string name, std::int64_t ms, std::string source) = 0;
  virtual Async<double> now(FiberId fiber, std::string source) = 0;  // seconds since 1970, UTC
  // Whether the run may use the new code that the marker `name` guards. False if the run passed this place before the
  // marker existed; otherwise true, which is recorded.
  virtual Async<bool> patched(FiberId fiber, std::string name, std::string source) = 0;
  // Performs an operation of the host program: if the journal has the result, returns it; otherwise runs `live` and
  // records the result.
  virtual Async<Value> recorded(FiberId fiber, Operation operation, std::function<Async<Value>(CancelToken)> live) = 0;
  // Cancelled with the scope of a fiber: for what a step's body waits for, which is not recorded.
  virtual CancelToken cancel_token(FiberId fiber) const = 0;
};

}  // namespace rille::engine
