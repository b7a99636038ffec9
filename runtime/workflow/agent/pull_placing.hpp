// PullPlacing: the end of a pull. Fetched files are synced, renamed to their destinations, and the folders synced, so
// that a pull that is answered outlives a power cut. Of small files all that wait go together: a file system writes its
// journal for many at the price of one. A large file goes alone, so that small ones do not wait for its bytes. Loop
// thread only.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/agent/pull_part.hpp"

namespace rille::agent {

class PullPlacing {
 public:
  struct File {
    File() = default;
    std::shared_ptr<PullPart> part;
    std::int64_t size_bytes = 0;
    std::function<void()> before, after;  // of its way into place; on the thread pool
  };
  explicit PullPlacing(Loop& loop) : loop_(loop) {}
  static Async<> place(std::shared_ptr<PullPlacing> self, File file);

 private:
  struct Waiting {
    File file;
    Future<Result<>> placed;
  };
  static Task<void> place_waiting(std::shared_ptr<PullPlacing> self);
  Loop& loop_;
  std::vector<Waiting> waiting_;
  bool running_ = false;
};

}  // namespace rille::agent
