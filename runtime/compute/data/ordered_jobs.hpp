// OrderedJobs: threads that work on jobs, whose results are taken in the order in which the jobs were given. Given and
// taken by one thread, which works on them itself if no other thread could be started. Private to runtime/compute/data.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/compute/data/pace.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::data {

template <class In, class Out>
class OrderedJobs {
 public:
  // work(thread, job, ended): `thread` counts from 0; once `ended` is true, the result is dropped.
  using Work = std::function<Result<Out>(int thread, In& job, const std::atomic<bool>& ended)>;

  OrderedJobs(int threads, Work work) : work_(std::move(work)) {
    try {
      for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { run(i); });
    } catch (const std::system_error&) {  // a limit of threads or memory: those that exist do the work
    }
  }
  // Waits for the jobs that run, and drops the others.
  ~OrderedJobs() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    ready_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  OrderedJobs(const OrderedJobs&) = delete;

  std::size_t given() const { return jobs_.size(); }  // and not taken
  void give(In in) {
    auto job = std::make_shared<Job>(Job{std::move(in), std::nullopt});
    jobs_.push_back(job);
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(job));
    }
    ready_.notify_one();
  }
  // Waits for the result of the first job that was not taken, and calls `look` meanwhile. given() must not be 0.
  Result<Out> take(const Look& look) {
    constexpr std::chrono::milliseconds between_looks(50);
    const std::shared_ptr<Job> first = jobs_.front();
    if (threads_.empty()) {
      if (look) look();
      jobs_.pop_front();
      queue_.pop_front();
      return work(0, first->in);
    }
    for (;;) {
      if (look) look();
      std::unique_lock lock(mutex_);
      if (done_.wait_for(lock, between_looks, [&] { return first->out.has_value(); })) break;
    }
    jobs_.pop_front();
    return std::move(*first->out);
  }

 private:
  struct Job {
    In in;
    std::optional<Result<Out>> out;
  };

  Result<Out> work(int thread, In& in) {
    try {
      return work_(thread, in, ended_);
    } catch (const std::bad_alloc&) {
      return make_error(ErrorKind::memory, "out of memory", "free memory on this machine, or use fewer threads");
    } catch (const std::exception& e) { return make_error(ErrorKind::internal, e.what()); }
  }

  void run(int thread) {
    std::unique_lock lock(mutex_);
    for (;;) {
      ready_.wait(lock, [&] { return ended_ || !queue_.empty(); });
      if (ended_) return;
      const std::shared_ptr<Job> job = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      Result<Out> out = work(thread, job->in);
      lock.lock();
      job->out.emplace(std::move(out));
      done_.notify_one();
    }
  }

  const Work work_;
  std::deque<std::shared_ptr<Job>> jobs_;   // given and not taken
  std::mutex mutex_;                        // guards what follows, and the jobs' results
  std::deque<std::shared_ptr<Job>> queue_;  // not begun
  std::atomic<bool> ended_ = false;
  std::condition_variable ready_, done_;
  std::vector<std::thread> threads_;
};

}  // namespace rille::data
