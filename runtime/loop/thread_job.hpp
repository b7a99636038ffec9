// Work that blocks (disk, DNS, compression) runs on libuv's thread pool; the awaiting task goes on when it is done.
// The function must not touch loop-thread objects. Cancelling waits for a job that has begun: threads are not killed.
#pragma once

#include <memory>
#include <optional>

#include "runtime/loop/loop.hpp"

namespace rille {

namespace detail {
struct JobBase {
  uv_work_t request{};
  Loop* loop = nullptr;
  virtual ~JobBase() = default;
  virtual void run() = 0;
  virtual void finish() = 0;
};
void queue_job(Loop& loop, std::unique_ptr<JobBase> job);
}  // namespace detail

// `co_await thread_job(loop, [..] { return Result<int>(..); })`
template <class Fn>
auto thread_job(Loop& loop, Fn fn) -> Task<decltype(fn())> {
  using R = decltype(fn());
  struct Job : detail::JobBase {
    Job(Fn f, Future<R> d) : fn(std::move(f)), done(std::move(d)) {}
    Fn fn;
    Future<R> done;
    std::optional<R> result;
    void run() override { result.emplace(fn()); }
    void finish() override { done.set(std::move(*result)); }
  };
  Future<R> done(loop);
  detail::queue_job(loop, std::make_unique<Job>(std::move(fn), done));
  co_return co_await done;
}

}  // namespace rille
