#include "runtime/compute/tensor/streams.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/compute/device/executor.hpp"
#include "runtime/compute/device/lane_rest.hpp"
#include "runtime/compute/tensor/order.hpp"

namespace rille::tensor {

namespace {

constexpr std::chrono::microseconds rest_first{10}, rest_longest{200};

Result<void> outside(const Graph& g, Graph::Impl& impl, const char* what) {
  if (!g.tracing() && !impl.notebook) return success();
  return make_error(ErrorKind::state, std::string(what) + " inside a compiled function",
                    "do it outside: a compiled function is one piece of work, and spreads over streams by itself");
}

std::int64_t now_ns() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Polls events on the lane, which runs other jobs between the polls.
struct Waiting {
  std::shared_ptr<LaneQueue> queue;
  std::shared_ptr<device::Device> device;
  std::vector<std::shared_ptr<Event>> events;  // events that were not done at the last poll
  std::function<void(Result<void>)> done;
  std::chrono::microseconds pause = rest_first;
};

void ask(std::shared_ptr<Waiting> w) {
  auto& lane = w->device->lane();
  lane.post([w = std::move(w)](kernels::LaneState&) {
    Result<bool> is = true;
    while (!w->events.empty() && (is = w->events.back()->done()) && *is) w->events.pop_back();
    if (is && !*is) {
      device::rest(w->pause);
      w->pause = std::min(2 * w->pause, rest_longest);
      return ask(w);
    }
    const auto first = std::exchange(w->queue->first_error, nullptr);
    w->done(first ? Result<void>(Error(*first)) : is ? success() : Result<void>(std::move(is).error()));
  });
}

}  // namespace

Result<bool> Event::done() const {
  {
    const std::lock_guard lock(mutex_);
    if (error_) return Error(*error_);
    if (!reached_ || !event_) return reached_;
  }
  return event_->done();
}

void Event::reached(Result<void> recorded, std::int64_t at_ns) {
  const std::lock_guard lock(mutex_);
  reached_ = true;
  at_ns_ = at_ns;
  if (!recorded) error_ = std::move(recorded).error();
}

Result<double> Event::seconds_between(const Event& from, const Event& to) {
  if (from.event_ && to.event_) {
    RILLE_TRY(const auto ns, to.event_->ns_since(*from.event_));
    return double(ns) * 1e-9;
  }
  const std::scoped_lock lock(from.mutex_, to.mutex_);
  return double(to.at_ns_ - from.at_ns_) * 1e-9;
}

Result<StreamPtr> make_stream(Graph& g) {
  if (auto* executor = g.device()->executor()) return executor->make_stream();
  return std::make_shared<device::Stream>();
}

Result<std::shared_ptr<Event>> record(Graph& g, const StreamPtr& stream) {
  RILLE_CHECK(outside(g, g.impl(), "an event is recorded"));
  std::shared_ptr<device::Event> of_device;
  if (auto* executor = g.device()->executor()) {
    RILLE_TRY(of_device, executor->make_event(true));
    if (stream) g.impl().streamed = true;
  }
  auto event = std::make_shared<Event>(std::move(of_device));
  g.flush();
  g.device()->lane().post([queue = g.impl().queue, device = g.device(), event, stream](kernels::LaneState&) {
    auto* const executor = device->executor();
    if (!executor) return event->reached(success(), now_ns());
    auto recorded = executor->record(*event->of_device(), stream.get());
    if (recorded && stream) recorded = queue->ordered(*executor).recorded(stream);
    event->reached(std::move(recorded), 0);
  });
  return event;
}

Result<void> wait(Graph& g, const StreamPtr& stream, const std::shared_ptr<Event>& event) {
  RILLE_CHECK(outside(g, g.impl(), "a stream waits"));
  g.flush();
  g.device()->lane().post([queue = g.impl().queue, device = g.device(), event, stream](kernels::LaneState&) {
    auto* const executor = device->executor();
    if (!executor) return;  // without an executor (the CPU) all work runs in one order, so the event has passed
    if (auto waits = executor->wait(stream.get(), *event->of_device()); !waits && !queue->first_error)
      queue->first_error = std::make_shared<const Error>(std::move(waits).error());
  });
  return success();
}

void when_done(Graph& g, std::vector<std::shared_ptr<Event>> events, std::function<void(Result<void>)> done) {
  auto waiting = std::make_shared<Waiting>();
  waiting->queue = g.impl().queue;
  waiting->device = g.device();
  waiting->events = std::move(events);
  waiting->done = std::move(done);
  ask(std::move(waiting));
}

}  // namespace rille::tensor
