// Streams and events in the graph's order. A stream takes launches (launch.hpp); tensor operations run in the device's
// own order. An event marks a position: after everything given to its order before it was recorded. The CPU has a
// single order, so a stream changes nothing there; an event's time is the clock's when the lane reaches it.
//
// Threads: the graph's; Event's functions: any. Errors: device, also if the device is lost; state inside a compiled
// function, which has an order of its own.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/compute/device/stream.hpp"
#include "runtime/compute/tensor/graph.hpp"

namespace rille::tensor {

using StreamPtr = std::shared_ptr<device::Stream>;  // null: the device's own order

class Event {
 public:
  explicit Event(std::shared_ptr<device::Event> of_device) : event_(std::move(of_device)) {}
  // Whether everything before it has run.
  Result<bool> done() const;
  // Requires both to be done.
  static Result<double> seconds_between(const Event& from, const Event& to);

  // The lane has reached it: `recorded` is the result of recording the device's event, at_ns the CPU's clock.
  void reached(Result<void> recorded, std::int64_t at_ns);
  device::Event* of_device() const { return event_.get(); }

 private:
  std::shared_ptr<device::Event> event_;  // null: the CPU's
  mutable std::mutex mutex_;              // of the members below
  bool reached_ = false;
  std::optional<Error> error_;
  std::int64_t at_ns_ = 0;
};

Result<StreamPtr> make_stream(Graph& g);
// Sends what is pending, so that it comes before the event.
Result<std::shared_ptr<Event>> record(Graph& g, const StreamPtr& stream);
// Operations given to the stream from here on run after the event, which must be of the same device.
Result<void> wait(Graph& g, const StreamPtr& stream, const std::shared_ptr<Event>& event);
// Calls back on the lane when all are done, or with the first error since the last report. Does not block the lane.
void when_done(Graph& g, std::vector<std::shared_ptr<Event>> events, std::function<void(Result<void>)> done);

}  // namespace rille::tensor
