#include "runtime/compute/device/lane.hpp"

#include <omp.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "kernels/call.hpp"
#include "runtime/compute/device/lane_busy.hpp"
#include "runtime/compute/device/lane_rest.hpp"

namespace rille::device {

namespace {

// The lane that runs on this thread, for rest(); null members: this thread is not a lane.
struct Resting {
  std::mutex* mutex = nullptr;
  std::condition_variable* wake = nullptr;
  const std::deque<Lane::Job>* jobs = nullptr;
  const bool* stop = nullptr;
};
thread_local Resting resting;

std::atomic<std::size_t> jobs_of_all{0};  // jobs of all lanes that are posted and not finished

}  // namespace

void rest(std::chrono::microseconds most) {
  const Resting r = resting;
  std::unique_lock lock(*r.mutex);
  r.wake->wait_for(lock, most, [&r] { return *r.stop || !r.jobs->empty(); });
}

struct Lane::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Job> jobs;
  std::atomic<std::size_t> depth{0};
  bool stop = false;
  bool orphaned = false;  // the lane's thread owns this State and deletes it when it ends
  int threads = 1;
  std::string name;
  std::thread thread;

  void run() {
    resting = {&mutex, &wake, &jobs, &stop};
    pthread_setname_np(pthread_self(), name.c_str());
    omp_set_num_threads(threads);  // affects only OpenMP teams that this thread starts
    omp_set_dynamic(0);
    kernels::LaneState lane;
    for (;;) {
      Job job;
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [this] { return stop || !jobs.empty(); });
        if (jobs.empty()) return;
        job = std::move(jobs.front());
        jobs.pop_front();
      }
      job(lane);
      job = nullptr;  // destroys captured values before the job counts as finished
      --depth;
      --jobs_of_all;
    }
  }
};

namespace {

int cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

int number_from(const char* name) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : 0;
}

}  // namespace

int compute_threads(int wanted) {
  if (const int n = number_from("RILLE_THREADS"); n > 0) return std::min(n, 1024);
  if (wanted > 0) return wanted;
  return std::max(1, cores() / std::max(1, number_from("RILLE_LOCAL_RANKS")));
}

std::shared_ptr<Lane> Lane::shared(int threads) {
  // One lane per process: two would compete for the same cores.
  static std::mutex mutex;
  static std::weak_ptr<Lane> current;
  const std::lock_guard lock(mutex);
  auto lane = current.lock();
  if (!lane) {
    lane = std::shared_ptr<Lane>(new Lane(compute_threads(threads), "rille-lane"));
    current = lane;
  }
  return lane;
}

std::shared_ptr<Lane> Lane::of_device(const std::string& name) {
  return std::shared_ptr<Lane>(new Lane(1, name.substr(0, 15)));  // Linux limits thread names to 15 characters
}

Lane::Lane(int threads, std::string name) : state_(std::make_unique<State>()) {
  state_->threads = threads;
  state_->name = std::move(name);
  state_->thread = std::thread([s = state_.get()] {
    s->run();
    if (s->orphaned) delete s;
  });
}

Lane::~Lane() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_one();
  // Destroying a job may drop the last handle of its lane, on the lane's own thread: a thread cannot join itself.
  if (state_->thread.get_id() == std::this_thread::get_id()) {
    state_->orphaned = true;  // only this thread reads `orphaned`
    state_->thread.detach();
    state_.release();  // this thread deletes the State when it ends
  } else {
    state_->thread.join();
  }
}

void Lane::post(Job job) {
  ++state_->depth;
  ++jobs_of_all;
  {
    const std::lock_guard lock(state_->mutex);
    state_->jobs.push_back(std::move(job));
  }
  state_->wake.notify_one();
}

std::size_t Lane::depth() const { return state_->depth; }
bool lanes_busy() { return jobs_of_all.load() > 0; }

bool lanes_settle(std::chrono::milliseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  while (lanes_busy()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

int Lane::threads() const { return state_->threads; }

}  // namespace rille::device
