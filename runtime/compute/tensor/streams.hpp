// Streams and events in program order. A stream takes launches of user kernels (launch.hpp); tensor operations run on
// the device's main stream. An event is done when all work sent to its stream before it is done. The CPU runs
// everything in one order: a stream changes nothing, and an event's time is the clock's when the lane reaches the
// event.
//
// Threads: the graph's; the functions of Event: any. Errors: device, for instance a lost device; state, inside a
// compiled function, which decides the order itself.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/compute/device/stream.hpp"
#include "runtime/compute/tensor/graph.hpp"

namespace rille::tensor {

using StreamPtr = std::shared_ptr<device::Stream>;  // null: the device's main stream

class Event {
 public:
  explicit Event(std::shared_ptr<device::Event> of_device) : event_(std::move(of_device)) {}
  // Whether all work before the event has run.
  Result<bool> done() const;
  // Seconds between two events, both of which must be done.
  static Result<double> seconds_between(const Event& from, const Event& to);

  // Called when the lane reaches the event. `recorded`: whether the device recorded it; at_ns: the CPU's clock.
  void reached(Result<void> recorded, std::int64_t at_ns);
  device::Event* of_device() const { return event_.get(); }

 private:
  std::shared_ptr<device::Event> event_;  // null: the device is the CPU
  mutable std::mutex mutex_;              // guards the members below
  bool reached_ = false;
  std::optional<Error> error_;
  std::int64_t at_ns_ = 0;
};

Result<StreamPtr> make_stream(Graph& g);
// Records an event on `stream`, after sending pending operations to the lane, so that they come before the event.
Result<std::shared_ptr<Event>> record(Graph& g, const StreamPtr& stream);
// Operations sent to the stream from now on run after the event, which must be of the same device.
Result<void> wait(Graph& g, const StreamPtr& stream, const std::shared_ptr<Event>& event);
// Calls `done` on the lane when all events are done, or with the first unreported error. Does not block the lane.
void when_done(Graph& g, std::vector<std::shared_ptr<Event>> events, std::function<void(Result<void>)> done);

}  // namespace rille::tensor
