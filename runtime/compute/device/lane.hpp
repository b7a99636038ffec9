// Lane: the process's one thread for CPU compute, with OpenMP below it. There is one because two OpenMP teams on the
// same cores slow each other down tenfold (measured). Jobs run in the order of post().
//
// Threads: post() and depth() from any; jobs must not wait for the lane. The destructor runs all posted jobs, then
// joins. A child has no lane after a fork and must not use an earlier one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace rille::kernels {
class LaneState;
}

namespace rille::device {

class Lane {
 public:
  using Job = std::function<void(kernels::LaneState&)>;
  // The process's lane, created if none is held. `threads` takes effect only then; 0: one per core, divided by the
  // local ranks in the environment (RILLE_LOCAL_RANKS); RILLE_THREADS overrides both.
  static std::shared_ptr<Lane> shared(int threads = 0);
  // For a device that computes by itself: a plain thread that gives it work.
  static std::shared_ptr<Lane> of_device(const std::string& name);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void post(Job job);
  std::size_t depth() const;  // jobs posted and not finished; for callers that must not run ahead
  int threads() const;

 private:
  Lane(int threads, std::string name);
  struct State;
  std::unique_ptr<State> state_;
};

// A job that runs work(lane) and reports its result only after `work` is destroyed: the receiver may drop the last
// other handle and end the process, and the device must not be closed after that.
template <class Work, class Done>
Lane::Job telling(Work work, Done done) {
  return [work = std::optional<Work>(std::move(work)), done = std::move(done)](kernels::LaneState& lane) mutable {
    auto result = (*work)(lane);
    work.reset();
    done(std::move(result));
  };
}

}  // namespace rille::device
