// The `local` provider: this machine, without an account. An instance is a directory `<root>/instances/<id>/` with a
// machine.json; its id derives from the create token, so that create is idempotent. Nothing runs until a channel
// connects. create and terminate survive `kill -9` at any point: repeating the call finishes them. terminate ends the
// instance's agent and all its descendants, including orphans and processes in other sessions, before it removes the
// directory. GPUs are offered as in NVML. An instance has exclusive use of the GPUs in its machine.json
// (store/gpu_claim.hpp). The dead man's switch is in the guest: the agent ends itself when the machine's time is up.
// Blocking work runs on the thread pool.
#pragma once

#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

struct LocalOptions {
  std::string root;                  // RILLE_HOME
  Micros price_micros_per_hour = 0;  // for tests and simulations
  std::int64_t grace_ms = 2000;      // between SIGTERM and SIGKILL of the agent
};

std::unique_ptr<Provider> make_local_provider(Loop& loop, LocalOptions options);

}  // namespace rille::provider
