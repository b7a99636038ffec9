// Lane: the one thread of a process on which all CPU compute runs, with OpenMP beneath it. One lane because
// two OpenMP teams on the same cores slow each other by ten times (docs/design/measurements). Jobs run in the
// order of post().
//
// Threads: post() and depth() from any; jobs must not wait for the lane. The destructor runs what was posted,
// then joins. After a fork the child has no lane; it must not use one made before.
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
  // The process's lane, made when nobody holds one. `threads` counts only then; 0: one per core, divided by the local
  // ranks that the environment announces (RILLE_LOCAL_RANKS); RILLE_THREADS overrides both.
  static std::shared_ptr<Lane> shared(int threads = 0);
  // Of a device that computes by itself: a plain thread that gives it work.
  static std::shared_ptr<Lane> of_device(const std::string& name);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void post(Job job);
  std::size_t depth() const;  // jobs posted and not finished: what a caller that must not run ahead looks at
  int threads() const;

 private:
  Lane(int threads, std::string name);
  struct State;
  std::unique_ptr<State> state_;
};

// A job of work(lane) whose result is told last, when all that `work` held is let go: who hears of it may drop the last
// other handle and end the process, and a device must not be closed behind that.
template <class Work, class Done>
Lane::Job telling(Work work, Done done) {
  return [work = std::optional<Work>(std::move(work)), done = std::move(done)](kernels::LaneState& lane) mutable {
    auto result = (*work)(lane);
    work.reset();
    done(std::move(result));
  };
}

}  // namespace rille::device
