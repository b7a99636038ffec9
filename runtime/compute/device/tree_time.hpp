// TreeTime: the processor time of a child process with the processes that it has started, told as it grows. While the
// child runs, /proc shows it in steps of 10 ms; a process that ended after the last look counts when its parent has
// waited for it. One thread.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>

namespace rille::device {

class TreeTime {
 public:
  // `tell` (may be empty) gets the growth since its last call, and must outlive this object.
  TreeTime(pid_t child, const std::function<void(std::int64_t ns)>& tell) : child_(child), tell_(tell) {}
  void look();                     // while the child has not been waited for
  void ended(const rusage& used);  // by wait4
 private:
  void grown_to(std::int64_t ns);

  const pid_t child_;
  const std::function<void(std::int64_t ns)>& tell_;
  std::int64_t told_ns_ = 0;
};

// User and system time of the child and of the processes that it has waited for.
std::int64_t processor_ns(const rusage& used);

}  // namespace rille::device
