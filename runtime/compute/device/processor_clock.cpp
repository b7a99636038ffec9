#include "runtime/compute/device/processor_clock.hpp"

#include <omp.h>
#include <pthread.h>

#include <algorithm>

namespace rille::device {

ProcessorClock ProcessorClock::of_team() {
  ProcessorClock clock;
  clock.clocks_.resize(std::size_t(std::max(1, omp_get_max_threads())), CLOCK_THREAD_CPUTIME_ID);
  auto& clocks = clock.clocks_;
#pragma omp parallel num_threads(int(clocks.size()))
  pthread_getcpuclockid(pthread_self(), &clocks[std::size_t(omp_get_thread_num())]);
  return clock;
}

std::int64_t ProcessorClock::ns() const {
  std::int64_t sum = 0;
  for (const clockid_t id : clocks_) {
    timespec t{};
    if (clock_gettime(id, &t) == 0) sum += t.tv_sec * std::int64_t(1'000'000'000) + t.tv_nsec;
  }
  return sum;
}

}  // namespace rille::device
