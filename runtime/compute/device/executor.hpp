// Executor: runs the graph's operations on a GPU. The CPU has no Executor: the graph calls CPU kernels directly.
//
// Calls are queued in order and may run later; an error that a kernel finds in its data is returned by the next
// Device::finish() or Device::download(). An Executor's own errors: kind device (no such operation, or the device is
// lost), kind memory. Threads: the device's lane, one call at a time; functions marked "any thread" need no lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/call.hpp"
#include "kernels/operations.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::device {

class Event;
class Kernel;
class Stream;
struct LaunchShape;
struct LaunchArgument;

// A sequence of recorded calls that replays as one. May be destroyed on any thread, even while a replay runs.
class Captured {
 public:
  virtual ~Captured() = default;
};

// One entry of the device's trace: a kernel run, a copy or a fill of memory.
struct Traced {
  std::uint64_t call = 0;  // the number given to trace_call(); 0: no number was given
  std::string name;
  std::int64_t ns = 0, bytes = 0;  // ns: duration; bytes: size of a copy or fill
};

// An operation for which Rille's own kernel ran, because a library declined it or is missing.
struct Fallback {
  std::string library, operation;  // "cuBLASLt", and the operation's kernel
  std::string why;                 // why the library was not used, at the first such call
  std::int64_t calls = 0;          // number of calls; replays of captured calls do not count
};

class Executor {
 public:
  virtual bool knows(kernels::OpId op) const = 0;  // any thread; whether run() can do `op`
  // Queues one operation. Error of kind memory: nothing was queued.
  virtual Result<> run(kernels::OpId op, const kernels::Call& call) = 0;
  // Launches a user's kernel that was compiled for this device; loads the kernel at its first launch.
  virtual Result<> launch(const Kernel& kernel, const LaunchShape& shape,
                          const std::vector<LaunchArgument>& arguments) = 0;
  virtual Result<int> suggested_block(const Kernel& kernel) = 0;  // any thread; returns threads per block
  // Why groups of element-wise operations are not compiled into one kernel; "": no compilation has failed. Any thread.
  virtual std::string why_one_by_one() const = 0;
  virtual std::vector<Fallback> fallbacks() const = 0;                       // any thread
  virtual Result<> copy(void* to, const void* from, std::size_t bytes) = 0;  // both pointers: device memory
  // Calls between begin_capture() and end_capture() are recorded and do not run. They must not allocate memory.
  virtual Result<> begin_capture() = 0;
  virtual Result<std::shared_ptr<Captured>> end_capture() = 0;
  // Runs the captured calls. Random operations among them use this seed and step.
  virtual Result<> replay(Captured& captured, std::uint64_t seed, std::uint64_t step) = 0;
  // Called after each job of the lane: waits while too much queued work has not run yet.
  virtual Result<> pace() = 0;
  // Measures the device time of the calls between start_clock() and stop_clock_ns(). stop_clock_ns() waits for them.
  virtual Result<> start_clock() = 0;
  virtual Result<std::int64_t> stop_clock_ns() = 0;
  // A trace of kernels and copies, recorded by the device while work continues. Error of kind device: not available.
  virtual Result<> trace_start() = 0;
  virtual void trace_call(std::uint64_t call) = 0;       // number for later records; 0: no number
  virtual Result<std::vector<Traced>> trace_stop() = 0;  // waits for the traced work
  // A null Stream is the default stream, on which all other calls run. Only wait() orders work on two streams.
  virtual Result<std::shared_ptr<Stream>> make_stream() = 0;          // on any thread
  virtual Result<std::shared_ptr<Event>> make_event(bool timed) = 0;  // on any thread
  virtual void choose(Stream* stream) = 0;                            // later launch() calls use this stream
  virtual Result<> record(Event& event, Stream* stream) = 0;          // `event` occurs after the stream's work so far
  virtual Result<> wait(Stream* stream, Event& event) = 0;            // later work of `stream` waits for `event`

 protected:
  ~Executor() = default;
};

}  // namespace rille::device
