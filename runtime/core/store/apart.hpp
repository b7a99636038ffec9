// Keeps a worker thread off the processor of the thread that it serves. Under KVM, Linux takes a processor with a
// sleeping thread for busy. It may therefore put both threads on one processor, where they take turns.
#pragma once

#include <sched.h>

namespace rille::store {

class Apart {
 public:
  // Moves the calling thread off processor `cpu` until anywhere() is called. Does nothing if the thread runs on another
  // processor or may run on no other. All three functions must be called by the same thread.
  void from(int cpu);
  void anywhere();
  explicit operator bool() const { return left_ >= 0; }

 private:
  int left_ = -1;
  cpu_set_t allowed_{};  // the thread's affinity before from()
};

}  // namespace rille::store
