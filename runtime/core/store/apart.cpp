#include "runtime/core/store/apart.hpp"

#include <cstddef>

namespace rille::store {

void Apart::from(int cpu) {
  if (cpu < 0 || cpu == left_ || sched_getcpu() != cpu) return;
  anywhere();
  if (sched_getaffinity(0, sizeof allowed_, &allowed_) != 0 || CPU_COUNT(&allowed_) < 2) return;
  cpu_set_t others = allowed_;
  CPU_CLR(static_cast<std::size_t>(cpu), &others);
  if (sched_setaffinity(0, sizeof others, &others) == 0) left_ = cpu;
}

void Apart::anywhere() {
  if (left_ >= 0) (void)sched_setaffinity(0, sizeof allowed_, &allowed_);
  left_ = -1;
}

}  // namespace rille::store
