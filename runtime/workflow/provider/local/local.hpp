// The `local` provider: offers the machine on which Rille runs; no account is needed. An instance is a directory
// `<root>/instances/<id>/` with a machine.json; the id derives from the create token, so that create is idempotent.
// Nothing runs until a channel connects. create and terminate survive `kill -9` at any point: repeating the call
// finishes them. terminate ends the instance's agent and all its descendants, including orphans and processes in other
// sessions, before it removes the directory. The offered GPUs are those that NVML lists. An instance has exclusive use
// of the GPUs in its machine.json (store/gpu_claim.hpp). No provider ends an expired instance: the agent ends itself
// (DeadMan::guest). Blocking work runs on the thread pool.
#pragma once

#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

struct LocalOptions {
  std::string root;                  // RILLE_HOME
  Micros price_micros_per_hour = 0;  // 0 except in tests and simulations
  std::int64_t grace_ms = 2000;      // time between SIGTERM and SIGKILL to the agent
};

std::unique_ptr<Provider> make_local_provider(Loop& loop, LocalOptions options);

}  // namespace rille::provider
