#include "runtime/compute/device/apart/kernel_child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "runtime/compute/device/kernel_files.hpp"
#include "runtime/compute/device/kernel_run.hpp"
#include "runtime/compute/device/tree_time.hpp"

namespace rille::device {

namespace {

constexpr std::chrono::seconds look_at_rest_every{1};

unsigned processors() { return std::max(1u, std::thread::hardware_concurrency()); }
unsigned threads_max() { return cooperative_blocks_max + 4 * processors() + 8; }
// The threads of OpenMP spin before they sleep.
std::int64_t rest_ns_max() { return 50'000'000 * std::int64_t(1 + processors()); }

struct Taken {
  long threads = 0, pages = 0;
};

Taken taken_by(pid_t pid) {
  Taken t;
  const auto text = read_small_file(fmt::format("/proc/{}/stat", pid), 4096);
  const auto name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end != std::string::npos)  // proc(5): the fields 20, num_threads, and 24, rss
    std::sscanf(text->c_str() + name_end + 1,
                " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s %*s %*s %ld", &t.threads,
                &t.pages);
  return t;
}

// The bytes that a memfd takes, without its holes.
std::int64_t bytes_of(int memory) {
  struct stat st {};
  return ::fstat(memory, &st) == 0 ? std::int64_t(st.st_blocks) * 512 : 0;
}

}  // namespace

KernelChild::KernelChild(Spawn what, bool confined, int memory)
    : confined_(confined), memory_(::fcntl(memory, F_DUPFD_CLOEXEC, 0)) {
  thread_ = std::thread([this, what = std::move(what)] { keep(what); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return started_; });
}

KernelChild::~KernelChild() {
  end();
  if (memory_ >= 0) ::close(memory_);
}

int KernelChild::end() {
  if (!thread_.joinable()) return status_;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
  return status_;
}

void KernelChild::keep(const Spawn& what) {
  const auto child = spawn(what);
  std::unique_lock lock(mutex_);
  if (!child) failure_ = child.error();
  else pid_ = *child;
  ::clock_getcpuclockid(pid_, &clock_);
  started_ = true;
  changed_.notify_all();
  if (failure_) return;
  while (!changed_.wait_for(lock, look_at_rest_every, [&] { return over_; }))
    if (!computes_) look_locked();
  ::kill(pid_, SIGKILL);
  rusage used{};
  while (::wait4(pid_, &status_, 0, &used) < 0 && errno == EINTR) {}
  used_ns_ = device::processor_ns(used);
}

void KernelChild::launch(std::int64_t memory_bytes, std::int64_t address_bytes) {
  const std::lock_guard lock(mutex_);
  computes_ = true;
  memory_bytes_ = memory_bytes;
  limit_address_space(address_bytes);
}

void KernelChild::rest() {
  const std::lock_guard lock(mutex_);
  limit_address_space(0);
  rested_ns_ = processor_ns();
  computes_ = false;
}

void KernelChild::look() {
  const std::lock_guard lock(mutex_);
  look_locked();
}

std::string KernelChild::why() {
  const std::lock_guard lock(mutex_);
  return why_;
}

void KernelChild::look_locked() {
  if (!confined_ || !why_.empty()) return;
  const Taken now = taken_by(pid_);
  if (now.threads > long(threads_max())) {
    why_ = fmt::format("it has started more than {} threads", threads_max());
  } else if (now.pages * ::sysconf(_SC_PAGESIZE) + bytes_of(memory_) > kernel_memory_bytes + 2 * memory_bytes_) {
    // Pages of the memfd are resident, too, while the process maps them.
    why_ = "it has taken more than 1 GiB of memory beside its tensors";
  } else if (!computes_ && processor_ns() - rested_ns_ > rest_ns_max()) {
    why_ = "it has gone on computing after its launch";
  }
  if (!why_.empty()) ::kill(pid_, SIGKILL);
}

// The process has set its own limit before it loaded anything, and cannot change it any more; the runner changes it
// here.
void KernelChild::limit_address_space(std::int64_t more_bytes) {
  if (!confined_) return;
  rlimit now{};
  if (!address_bytes_) {
    if (::prlimit(pid_, RLIMIT_AS, nullptr, &now) != 0) return;
    address_bytes_ = now.rlim_cur == RLIM_INFINITY ? 0 : std::int64_t(now.rlim_cur);
  }
  if (*address_bytes_ == 0 || ::prlimit(pid_, RLIMIT_AS, nullptr, &now) != 0) return;
  now.rlim_cur = std::min(rlim_t(*address_bytes_ + more_bytes), now.rlim_max);
  ::prlimit(pid_, RLIMIT_AS, &now, nullptr);
}

std::int64_t KernelChild::processor_ns() const {
  timespec t{};
  if (used_ns_ || ::clock_gettime(clock_, &t) != 0) return used_ns_;
  return t.tv_sec * std::int64_t(1'000'000'000) + t.tv_nsec;
}

}  // namespace rille::device
