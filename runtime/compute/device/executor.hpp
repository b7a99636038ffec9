// Executor: how a device that is not the CPU runs what the graph asks of it. The CPU has none: its memory is this
// machine's, and the graph calls kernels there by their addresses.
//
// Everything is asked for in order and may run later; what goes wrong with data while it runs is told by
// Device::finish() and Device::download(). Errors here: device (no such operation, the device is lost), memory.
// Threads: the device's lane, one call at a time; those marked "any" any.
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

// Calls that were captured as one. Dropped on any thread, also while it runs.
class Captured {
 public:
  virtual ~Captured() = default;
};

// What the device did: a kernel, a copy or a fill.
struct Traced {
  std::uint64_t call = 0;  // trace_call()'s; 0: nobody's
  std::string name;
  std::int64_t ns = 0, bytes = 0;  // bytes: of a copy or a fill
};

// Where a library declined an operation, or is not there, and an own kernel was launched instead.
struct Fallback {
  std::string library, operation;  // "cuBLASLt", the operation's kernel
  std::string why;                 // the first time
  std::int64_t calls = 0;          // a replay's are not counted
};

class Executor {
 public:
  virtual bool knows(kernels::OpId op) const = 0;  // any; whether it has a kernel here. OpId::launch is a user's
  // memory: nothing ran.
  virtual Result<> run(kernels::OpId op, const kernels::Call& call) = 0;
  // A user's kernel that was compiled for this device. Loaded here by its first launch.
  virtual Result<> launch(const Kernel& kernel, const LaunchShape& shape,
                          const std::vector<LaunchArgument>& arguments) = 0;
  virtual Result<int> suggested_block(const Kernel& kernel) = 0;  // any; threads
  // Why groups of element-wise operations run one by one here; "": they do not, as far as is known.
  virtual std::string why_one_by_one() const = 0;
  virtual std::vector<Fallback> fallbacks() const = 0;                       // any
  virtual Result<> copy(void* to, const void* from, std::size_t bytes) = 0;  // within the device
  // What is asked for in between is kept and does not run. Nothing may be allocated meanwhile.
  virtual Result<> begin_capture() = 0;
  virtual Result<std::shared_ptr<Captured>> end_capture() = 0;
  // Random operations draw by this seed and step.
  virtual Result<> replay(Captured& captured, std::uint64_t seed, std::uint64_t step) = 0;
  // After each job: waits while the device is too far behind.
  virtual Result<> pace() = 0;
  // How long what is asked for between the two takes on the device. stop waits.
  virtual Result<> start_clock() = 0;
  virtual Result<std::int64_t> stop_clock_ns() = 0;
  // The device's own records, taken while work goes on. device: it cannot here, and why.
  virtual Result<> trace_start() = 0;
  virtual void trace_call(std::uint64_t call) = 0;       // whose what is asked for from here on is; 0: nobody's
  virtual Result<std::vector<Traced>> trace_stop() = 0;  // waits
  // Streams (stream.hpp). Null is the device's own order, in which all else is. Nothing orders two of them but wait().
  virtual Result<std::shared_ptr<Stream>> make_stream() = 0;          // any
  virtual Result<std::shared_ptr<Event>> make_event(bool timed) = 0;  // any
  virtual void choose(Stream* stream) = 0;                            // where launch() launches from here on
  virtual Result<> record(Event& event, Stream* stream) = 0;          // behind what the stream was given
  virtual Result<> wait(Stream* stream, Event& event) = 0;            // what it is given from here on comes after

 protected:
  ~Executor() = default;
};

}  // namespace rille::device
