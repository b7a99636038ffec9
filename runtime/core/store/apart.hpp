// Keeps a worker thread off the processor of the thread that it serves. Under KVM, Linux takes a processor whose thread
// sleeps for busy, so it may leave both threads on one processor, where they take turns.
#pragma once

#include <sched.h>

namespace rille::store {

class Apart {
 public:
  // Moves the calling thread off `cpu` until anywhere() is called. Does nothing if the thread has no other processor,
  // or is on another one. All three functions must be called by the same thread.
  void from(int cpu);
  void anywhere();
  explicit operator bool() const { return left_ >= 0; }

 private:
  int left_ = -1;
  cpu_set_t allowed_{};  // the affinity before from()
};

}  // namespace rille::store
