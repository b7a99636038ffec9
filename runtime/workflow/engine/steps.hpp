// Steps: the durable verbs within a run. Each is answered from the journal, or executed once and recorded. Loop thread
// only.
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

// What a verb records: its kind ("step", "rent", "call", ..), its name, and its arguments.
struct Operation {
  // Not an aggregate: GCC 12 destroys brace-made temporaries in a co_await expression twice (see loop/task.hpp).
  Operation() = default;
  Operation(std::string k, std::string n, Value a, std::string s)
      : kind(std::move(k)), name(std::move(n)), args(std::move(a)), source(std::move(s)) {}
  std::string kind, name;
  Value args;          // hashed into the entry; a change is divergence
  std::string source;  // "train.lua:12", for messages
};

// Continues the seed of a step's random numbers: fiber's seed, then the step's key, "#" and the attempt.
inline std::uint64_t mix_seed(std::uint64_t seed, std::string_view text) {
  for (char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return seed;
}

class Steps {
 public:
  virtual ~Steps() = default;
  // Order: step_begin; the probe and step_probed if the ticket says so; the body; step_end; the body again while the
  // outcome says so. state: an operation between begin and end that the step's options do not allow (see step.hpp).
  virtual Async<StepTicket> step_begin(FiberId fiber, Operation step, StepOptions options) = 0;
  virtual Async<StepOutcome> step_probed(FiberId fiber, StepTicket ticket, Result<ProbeAnswer> answer) = 0;
  virtual Async<StepOutcome> step_end(FiberId fiber, StepTicket ticket, Result<Value> body) = 0;
  // Data for the body's next attempt. At most one heartbeat per second is written, the last.
  virtual Result<> step_heartbeat(FiberId fiber, const StepTicket& ticket, Value progress) = 0;
  // The fast path of a step without options: no coroutine, and one suspension (plain_steps.cpp). After plain_begin
  // returns true, either plain_end succeeds, and Guest::plain_done or Guest::cancel reports the outcome, or
  // plain_ticket converts it to a step as from step_begin: for a body that fails, and when plain_end returns false.
  // False without effect: the step is recorded, or must wait for the replay. `seed`: of the body's random numbers.
  virtual bool plain_begin(FiberId fiber, std::string_view name, std::string_view source, std::uint64_t& seed) = 0;
  virtual void plain_waits(FiberId fiber) = 0;  // the body suspends: records that it has begun
  virtual bool plain_end(FiberId fiber, const Value& result) = 0;
  virtual StepTicket plain_ticket(FiberId fiber) = 0;
  virtual Async<> sleep(FiberId fiber, std::string name, std::int64_t ms, std::string source) = 0;
  virtual Async<double> now(FiberId fiber, std::string source) = 0;  // seconds since 1970, UTC
  // Whether the code guarded by this marker belongs to this run: true, and recorded, unless the run passed this place
  // before the marker existed.
  virtual Async<bool> patched(FiberId fiber, std::string name, std::string source) = 0;
  // Host functions and other effects recorded when done: runs `live` unless the journal has the result.
  virtual Async<Value> recorded(FiberId fiber, Operation operation, std::function<Async<Value>(CancelToken)> live) = 0;
};

}  // namespace rille::engine
