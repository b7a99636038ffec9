// Streams and events, as the graph orders them. A stream takes launches (launch.hpp); tensor operations are the
// device's own. An event is a place: behind what an order had been asked for when it was recorded. On the CPU there is
// one order for all, so a stream adds nothing to it; an event's time is the clock's when the lane comes to it.
//
// Threads: the graph's, but for Event, whose functions are for any. Errors: device, also when it is lost; state, inside
// a compiled function, which is an order of its own.
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
  // Whether what stood before it has run.
  Result<bool> done() const;
  // Both done.
  static Result<double> seconds_between(const Event& from, const Event& to);

  // The lane has come to it: with the device's event recorded, or at this time of the CPU's clock.
  void reached(Result<void> recorded, std::int64_t at_ns);
  device::Event* of_device() const { return event_.get(); }

 private:
  std::shared_ptr<device::Event> event_;  // null: the CPU's
  mutable std::mutex mutex_;              // of the rest
  bool reached_ = false;
  std::optional<Error> error_;
  std::int64_t at_ns_ = 0;
};

Result<StreamPtr> make_stream(Graph& g);
// Sends what is pending, so that it stands before the event.
Result<std::shared_ptr<Event>> record(Graph& g, const StreamPtr& stream);
// What the stream is given from here on comes after the event, which is of the same device.
Result<void> wait(Graph& g, const StreamPtr& stream, const std::shared_ptr<Event>& event);
// Calls back on the lane when all are done, or with what went wrong since the last report. The lane goes on meanwhile.
void when_done(Graph& g, std::vector<std::shared_ptr<Event>> events, std::function<void(Result<void>)> done);

}  // namespace rille::tensor
