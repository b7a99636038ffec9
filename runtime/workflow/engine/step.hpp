// The engine-guest interface of steps: the kind of the body's effect, the retry policy, and the ticket that a guest
// holds while the body runs. The engine decides whether, when and how often the body runs; the guest runs it. The order
// of the calls: steps.hpp.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::engine {

// What happens to a step whose process died while its body ran.
enum class Effect : std::uint8_t {
  idempotent,  // the body runs again
  pure,        // the body runs again; nothing is written to the journal before the body has ended
  once,        // the body does not run again: the step's begin is on the disk before the body runs, and a resumed run
               // fails with `state`, code step_uncertain, unless a probe finds out whether the body took effect
};

struct RetryPolicy {
  int attempts_max = 5;  // most attempts in total; only retryable errors are retried unless any_error is set
  std::int64_t initial_ms = 1000;
  double factor = 2;
  std::int64_t cap_ms = 60'000;  // longest pause; each pause is random from 0 to the back-off, seeded by the step's key
  bool any_error = false;
  std::int64_t elapsed_ms_max = 0;  // no attempt starts later than this after the first attempt; 0: no limit
  bool pauses = false;              // suspend the run after the last attempt; a resume allows attempts_max more
  bool counts_crashes = false;      // an attempt cut off by a crash counts towards attempts_max
};

struct StepOptions {
  Effect effect = Effect::idempotent;
  bool probes = false;  // the guest has a probe that finds out whether a `once` step took effect
  RetryPolicy retry;    // unused for a `once` step
  // If a process dies inside the body more often than this, the step fails with `state`, code step_poisoned. To count
  // crashes, the begin of each attempt is on the disk before the body runs. Below 0: not counted. Unused for `pure`.
  int crashes_max = -1;
  std::int64_t timeout_ms = 0;            // per attempt: cancels the body with a retryable `timeout`; 0: none
  std::int64_t total_timeout_ms = 0;      // limit for all attempts together, across process deaths; 0: none
  std::int64_t heartbeat_timeout_ms = 0;  // longest time between two heartbeats of the body; 0: none

  bool limited() const { return timeout_ms > 0 || total_timeout_ms > 0 || heartbeat_timeout_ms > 0; }
};

struct StepTicket {
  std::string key;  // the entry's key: "fiber path/name#n"
  int attempt = 1;
  std::optional<Result<Value>> recorded;  // set: the recorded outcome; the step is done
  bool probe = false;                     // the step was cut off: run the probe first, then call step_probed
  Value last;                             // the last heartbeat of an earlier attempt
  std::uint64_t entry = 0;                // the engine's number of the step's entry
};

// A probe's answer: the step took effect with this result, or it had no effect.
struct ProbeAnswer {
  std::optional<Value> done;
};

struct StepOutcome {
  bool again = false;              // run the body (again): the delay is over
  int attempt = 1;                 // number of the next attempt
  Value last;                      // the last heartbeat, for the next attempt
  Result<Value> result = Value();  // the result as stored in the journal; set if `again` is false
};

// An idempotency key of one step of one run: the same in every attempt and after every resume.
std::string step_token(const std::string& run, const std::string& key);

}  // namespace rille::engine
