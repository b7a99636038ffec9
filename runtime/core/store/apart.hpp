// Keeps a thread off the processor of another that it works for. Linux leaves such two on one processor where it does
// not take the other for idle: under KVM, one that sleeps counts as taken. So they would work by turns.
#pragma once

#include <sched.h>

namespace rille::store {

class Apart {
 public:
  // The calling thread leaves `cpu`, and does not come back before anywhere(). Nothing where it has no other, or is not
  // there. The same thread calls all three.
  void from(int cpu);
  void anywhere();
  explicit operator bool() const { return left_ >= 0; }

 private:
  int left_ = -1;
  cpu_set_t allowed_{};  // what it had before
};

}  // namespace rille::store
