// What goes between the engine and a guest about a step: what its body's effect is like, how it is tried again, and the
// ticket that a guest holds while the body runs. The engine decides whether, when and how often the body runs; the
// guest runs it. See run.hpp for the order of the calls.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::engine {

// What a process that died while the body ran leaves to the next one.
enum class Effect : std::uint8_t {
  idempotent,  // the body runs again
  pure,        // the same; nothing is written before the body has ended
  once,        // the body does not run again: that it began is on the disk before it does, and a resumed run fails with
               // `state`, code step_uncertain, unless a probe finds out what came of it
};

struct RetryPolicy {
  int attempts_max = 5;  // in all; only retryable errors unless `any_error`
  std::int64_t initial_ms = 1000;
  double factor = 2;
  std::int64_t cap_ms = 60'000;  // full jitter, seeded by the step's identity
  bool any_error = false;
  std::int64_t elapsed_ms_max = 0;  // no attempt begins later after the first; 0: no limit
  bool pauses = false;              // used up: the run is suspended, and its resumption grants as much again
  bool counts_crashes = false;      // an attempt that a crash cut off is used up, too
};

struct StepOptions {
  Effect effect = Effect::idempotent;
  bool probes = false;  // the guest has a probe, for `once`
  RetryPolicy retry;    // not for `once`
  // More crashes than this inside the body, and the step fails with `state`, code step_poisoned; not counted below 0.
  // To be counted, each attempt is on the disk before it begins. Not for `pure`.
  int crashes_max = -1;
  std::int64_t timeout_ms = 0;            // of an attempt: the body is cancelled, with a retryable `timeout`; 0: none
  std::int64_t total_timeout_ms = 0;      // from the first attempt on, whatever processes die meanwhile
  std::int64_t heartbeat_timeout_ms = 0;  // between heartbeats

  bool limited() const { return timeout_ms > 0 || total_timeout_ms > 0 || heartbeat_timeout_ms > 0; }
};

struct StepTicket {
  std::string key;  // fiber path/name#n
  int attempt = 1;
  std::optional<Result<Value>> recorded;  // set: the step is done, here is its outcome
  bool probe = false;                     // it was cut off: ask the probe first, and tell step_probed
  Value last;                             // the last heartbeat of an earlier attempt
  std::uint64_t entry = 0;                // the engine's own
};

// What a probe found: the step was done, with this result, or nothing of it took effect.
struct ProbeAnswer {
  std::optional<Value> done;
};

struct StepOutcome {
  bool again = false;              // run the body (again): the delay is over
  int attempt = 1;                 // of the next run of the body
  Value last;                      // for it
  Result<Value> result = Value();  // the decoded journal copy, when not again
};

// Of one step of one run: the same in every attempt and after every resume, whatever services take as a key.
std::string step_token(const std::string& run, const std::string& key);

}  // namespace rille::engine
