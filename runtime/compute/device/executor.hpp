// Executor: how a device other than the CPU runs the graph's operations. The CPU has none: the graph calls its kernels
// directly on host memory.
//
// Calls are queued in order and may run later; errors that a kernel finds in its data are returned by Device::finish()
// and Device::download(). Errors here: device (no such operation, the device is lost), memory. Threads: the device's
// lane, one call at a time; functions marked "any" from any thread.
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

// Calls captured as one. May be destroyed on any thread, even while it runs.
class Captured {
 public:
  virtual ~Captured() = default;
};

// A record of the device's trace: a kernel, a copy or a fill.
struct Traced {
  std::uint64_t call = 0;  // from trace_call(); 0: none
  std::string name;
  std::int64_t ns = 0, bytes = 0;  // bytes: of a copy or a fill
};

// An operation that a library declined, or whose library is missing, so that Rille's own kernel ran.
struct Fallback {
  std::string library, operation;  // "cuBLASLt", the operation's kernel
  std::string why;                 // the first reason
  std::int64_t calls = 0;          // without replays
};

class Executor {
 public:
  virtual bool knows(kernels::OpId op) const = 0;  // any; whether it has a kernel for `op`. OpId::launch: a user's
  // memory: nothing ran.
  virtual Result<> run(kernels::OpId op, const kernels::Call& call) = 0;
  // Launches a user's kernel compiled for this device; loads it at its first launch.
  virtual Result<> launch(const Kernel& kernel, const LaunchShape& shape,
                          const std::vector<LaunchArgument>& arguments) = 0;
  virtual Result<int> suggested_block(const Kernel& kernel) = 0;  // any; threads per block
  // Why groups of element-wise operations run one by one here; "": no reason so far.
  virtual std::string why_one_by_one() const = 0;
  virtual std::vector<Fallback> fallbacks() const = 0;                       // any
  virtual Result<> copy(void* to, const void* from, std::size_t bytes) = 0;  // within the device
  // Calls in between are recorded and do not run. They must not allocate.
  virtual Result<> begin_capture() = 0;
  virtual Result<std::shared_ptr<Captured>> end_capture() = 0;
  // Random operations use this seed and step.
  virtual Result<> replay(Captured& captured, std::uint64_t seed, std::uint64_t step) = 0;
  // After each job: waits while the device is too far behind.
  virtual Result<> pace() = 0;
  // Measures the device time of the calls in between. stop_clock_ns waits.
  virtual Result<> start_clock() = 0;
  virtual Result<std::int64_t> stop_clock_ns() = 0;
  // The device's own trace, taken while work continues. device: not available.
  virtual Result<> trace_start() = 0;
  virtual void trace_call(std::uint64_t call) = 0;       // the call of later work; 0: none
  virtual Result<std::vector<Traced>> trace_stop() = 0;  // waits
  // Streams (stream.hpp). Null is the device's own order, which has all other work. Only wait() orders two streams.
  virtual Result<std::shared_ptr<Stream>> make_stream() = 0;          // any
  virtual Result<std::shared_ptr<Event>> make_event(bool timed) = 0;  // any
  virtual void choose(Stream* stream) = 0;                            // stream of later launch() calls
  virtual Result<> record(Event& event, Stream* stream) = 0;          // after the stream's work so far
  virtual Result<> wait(Stream* stream, Event& event) = 0;            // later work of the stream waits for it

 protected:
  ~Executor() = default;
};

}  // namespace rille::device
