// Lane: a thread that runs jobs in the order of post(). The process has one lane for CPU compute, which starts OpenMP
// threads. There is only one because two OpenMP teams on the same cores slow each other down tenfold (measured). Each
// GPU has a further lane, which only queues its work.
//
// Threads: post() and depth() from any thread; a job must not wait for another job of its lane. The destructor runs all
// posted jobs, then joins the thread. After a fork the child process has no lane and must not use the parent's.
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

// How many threads this process should compute with: RILLE_THREADS if it is set, else `wanted`; 0: one per core,
// divided by the local ranks in the environment (RILLE_LOCAL_RANKS). Any thread.
int compute_threads(int wanted = 0);

class Lane {
 public:
  using Job = std::function<void(kernels::LaneState&)>;
  // Returns the process's lane for CPU compute; creates it if nothing holds one. `threads` takes effect only when it is
  // created, as for compute_threads.
  static std::shared_ptr<Lane> shared(int threads = 0);
  // Creates a lane for a GPU: a thread, without OpenMP, that queues the GPU's work.
  static std::shared_ptr<Lane> of_device(const std::string& name);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void post(Job job);
  std::size_t depth() const;  // number of jobs that are posted and not finished
  int threads() const;

 private:
  Lane(int threads, std::string name);
  struct State;
  std::unique_ptr<State> state_;
};

// Makes a job that runs work(lane), destroys `work` and then passes the result to `done`. The order matters: the
// receiver may drop all other handles of a device and end the process, and `work` must not close the device after that.
template <class Work, class Done>
Lane::Job telling(Work work, Done done) {
  return [work = std::optional<Work>(std::move(work)), done = std::move(done)](kernels::LaneState& lane) mutable {
    auto result = (*work)(lane);
    work.reset();
    done(std::move(result));
  };
}

}  // namespace rille::device
