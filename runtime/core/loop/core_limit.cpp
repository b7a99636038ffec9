#include "runtime/core/loop/core_limit.hpp"

#include <sys/resource.h>

namespace rille {

namespace {
rlimit before{};
bool lowered = false;
}  // namespace

// Only the limit: PR_SET_DUMPABLE would also hide /proc/PID from others of the same user, and by what stands there
// (a mark in the environment) an agent's processes are found and ended.
void keep_no_core() {
  if (lowered || getrlimit(RLIMIT_CORE, &before) != 0 || before.rlim_cur == 0) return;
  const rlimit none{0, before.rlim_max};
  lowered = setrlimit(RLIMIT_CORE, &none) == 0;
}

void restore_core_limit() {
  if (lowered) setrlimit(RLIMIT_CORE, &before);
}

}  // namespace rille
