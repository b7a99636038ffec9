// Runs blocking work (disk, DNS, compression) on libuv's thread pool and resumes the awaiting task when the work is
// done. The function must capture by value: it must not use loop-thread objects or the waiter's coroutine frame, which
// may be destroyed before the job ends. Cancelling a job that has begun waits for it: threads are not killed.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>

#include "runtime/core/loop/loop.hpp"

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

// Example: `co_await thread_job(loop, [..] { return Result<int>(..); })`
template <class Fn>
auto thread_job(Loop& loop, Fn fn) -> Task<decltype(fn())> {
  using R = decltype(fn());
  struct Job : detail::JobBase {
    Job(Fn f, Future<R> d) : fn(std::move(f)), done(std::move(d)) {}
    Fn fn;
    Future<R> done;
    std::optional<R> result;
    void run() override {
      if constexpr (!std::is_constructible_v<R, Error>) {
        result.emplace(fn());
      } else {
        try {
          result.emplace(fn());
        } catch (const std::bad_alloc&) {
          result.emplace(make_error(ErrorKind::memory, "out of memory",
                                    "free memory on this machine, or work on less data at once"));
        } catch (const std::exception& e) {  // an escaping exception would end the process
          result.emplace(make_error(ErrorKind::internal, e.what()));
        }
      }
    }
    void finish() override { done.set(std::move(*result)); }
  };
  Future<R> done(loop);
  detail::queue_job(loop, std::make_unique<Job>(std::move(fn), done));
  co_return co_await done;
}

}  // namespace rille
