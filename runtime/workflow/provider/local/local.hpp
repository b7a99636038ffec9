// The `local` provider: this machine, without an account. An instance is a directory `<root>/instances/<id>/` with a
// machine.json; its id comes from the create token, so that create is idempotent. Nothing runs until an agent is
// reached.
// create and terminate are whole at any `kill -9`: calling again finishes them. terminate ends the instance's agent and
// every process beneath it, those that left its session and lost their parents too, before the directory goes.
// GPUs are offered as NVML shows them. An instance has those in its machine.json to itself (store/gpu_claim.hpp).
// The dead man is the guest: the instance's agent ends itself when the machine's time is up.
// Blocking work runs on the thread pool.
#pragma once

#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

struct LocalOptions {
  std::string root;                  // RILLE_HOME
  Micros price_micros_per_hour = 0;  // for tests and rehearsals
  std::int64_t grace_ms = 2000;      // between asking the agent to end and ending it
};

std::unique_ptr<Provider> make_local_provider(Loop& loop, LocalOptions options);

}  // namespace rille::provider
