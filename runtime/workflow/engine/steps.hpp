// Steps: the durable verbs that concern the run alone. Each is answered from the journal, or done once and recorded.
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

// What a verb records: its kind ("step", "rent", "call", ..), its name, and what identifies its arguments.
struct Operation {
  // Not an aggregate: GCC 12 destroys brace-made temporaries in a co_await expression twice (see loop/task.hpp).
  Operation() = default;
  Operation(std::string k, std::string n, Value a, std::string s)
      : kind(std::move(k)), name(std::move(n)), args(std::move(a)), source(std::move(s)) {}
  std::string kind, name;
  Value args;          // hashed into the entry; a change is divergence
  std::string source;  // "train.lua:12", for messages
};

class Steps {
 public:
  virtual ~Steps() = default;
  // step_begin; where the ticket asks for it, the probe and step_probed; the body; step_end; the body again while the
  // outcome says so. state: between begin and end, for what the step does not have (see step.hpp).
  virtual Async<StepTicket> step_begin(FiberId fiber, Operation step, StepOptions options) = 0;
  virtual Async<StepOutcome> step_probed(FiberId fiber, StepTicket ticket, Result<ProbeAnswer> answer) = 0;
  virtual Async<StepOutcome> step_end(FiberId fiber, StepTicket ticket, Result<Value> body) = 0;
  // What the body wants its next attempt to know. Of several in a second the last is written.
  virtual Result<> step_heartbeat(FiberId fiber, const StepTicket& ticket, Value progress) = 0;
  // The short way of a step without options: no coroutine, and one suspension (plain_steps.cpp). Once plain_begin
  // has said yes, either plain_end does, and Guest::plain_done or Guest::cancel tells the rest, or plain_ticket makes
  // it a step that step_begin began: for a body that fails, and when plain_end says no.
  // False, and nothing has happened: it is in the record, or must wait for it. `seed`: of the body's random numbers.
  virtual bool plain_begin(FiberId fiber, std::string_view name, std::string_view source, std::uint64_t& seed) = 0;
  virtual void plain_waits(FiberId fiber) = 0;  // the body suspends: that it has begun is recorded
  virtual bool plain_end(FiberId fiber, const Value& result) = 0;
  virtual StepTicket plain_ticket(FiberId fiber) = 0;
  virtual Async<> sleep(FiberId fiber, std::string name, std::int64_t ms, std::string source) = 0;
  virtual Async<double> now(FiberId fiber, std::string source) = 0;  // seconds since 1970, UTC
  // Whether code that this marker guards is this run's: true, and recorded, unless the run came past this place before
  // the marker was put there.
  virtual Async<bool> patched(FiberId fiber, std::string name, std::string source) = 0;
  // Host functions and other effects that are recorded once done: runs `live` unless the journal has the answer.
  virtual Async<Value> recorded(FiberId fiber, Operation operation, std::function<Async<Value>(CancelToken)> live) = 0;
};

}  // namespace rille::engine
