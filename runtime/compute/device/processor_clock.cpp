#include "runtime/compute/device/processor_clock.hpp"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <optional>

namespace rille::device {

namespace {

std::int64_t ns_of(clockid_t clock) {
  timespec t{};
  return clock_gettime(clock, &t) == 0 ? t.tv_sec * std::int64_t(1'000'000'000) + t.tv_nsec : 0;
}

}  // namespace

struct ProcessorClock::Others {
  std::mutex mutex;
  std::optional<clockid_t> process;  // the process that computes now
  std::int64_t from_ns = 0, last_ns = 0, before_ns = 0;

  static const std::shared_ptr<Others>& of_this_thread() {
    static thread_local const auto others = std::make_shared<Others>();
    return others;
  }
  std::int64_t ns() {
    const std::lock_guard lock(mutex);
    if (process) last_ns = std::max(last_ns, ns_of(*process));
    return before_ns + last_ns - from_ns;
  }
};

ProcessorClock::Also::Also(clockid_t process, std::int64_t& counted_ns)
    : others_(Others::of_this_thread()), counted_ns_(counted_ns) {
  const std::lock_guard lock(others_->mutex);
  others_->process = process;
  others_->from_ns = others_->last_ns = counted_ns;
}

ProcessorClock::Also::~Also() {
  const std::int64_t sum = others_->ns();
  const std::lock_guard lock(others_->mutex);
  counted_ns_ = others_->last_ns;
  others_->before_ns = sum;
  others_->process.reset();
  others_->from_ns = others_->last_ns = 0;
}

void ProcessorClock::Also::look() { others_->ns(); }

void ProcessorClock::add(std::int64_t ns) {
  Others& others = *Others::of_this_thread();
  const std::lock_guard lock(others.mutex);
  others.before_ns += ns;
}

ProcessorClock ProcessorClock::of_team() {
  ProcessorClock clock;
  clock.others_ = Others::of_this_thread();
  clock.clocks_.resize(std::size_t(std::max(1, omp_get_max_threads())), CLOCK_THREAD_CPUTIME_ID);
  auto& clocks = clock.clocks_;
#pragma omp parallel num_threads(int(clocks.size()))
  pthread_getcpuclockid(pthread_self(), &clocks[std::size_t(omp_get_thread_num())]);
  return clock;
}

std::int64_t ProcessorClock::ns() const {
  std::int64_t sum = others_->ns();
  for (const clockid_t id : clocks_) sum += ns_of(id);
  return sum;
}

}  // namespace rille::device
