#include "runtime/core/loop/core_limit.hpp"

#include <sys/resource.h>

namespace rille {

namespace {
rlimit before{};
bool lowered = false;
}  // namespace

// Sets only RLIMIT_CORE: PR_SET_DUMPABLE would also hide /proc/PID/environ from the user's other processes, and an
// agent's processes are found by their environment.
void keep_no_core() {
  if (lowered || getrlimit(RLIMIT_CORE, &before) != 0 || before.rlim_cur == 0) return;
  const rlimit none{0, before.rlim_max};
  lowered = setrlimit(RLIMIT_CORE, &none) == 0;
}

void restore_core_limit() {
  if (lowered) setrlimit(RLIMIT_CORE, &before);
}

}  // namespace rille
