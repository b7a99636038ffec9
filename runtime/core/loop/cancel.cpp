#include "runtime/core/loop/cancel.hpp"

#include <deque>
#include <utility>

namespace rille {

CancelToken::Registration& CancelToken::Registration::operator=(Registration&& o) noexcept {
  if (this != &o) {
    if (slot_) slot_->callback = nullptr;
    slot_ = std::move(o.slot_);
  }
  return *this;
}

CancelToken::Registration::~Registration() {
  if (slot_) slot_->callback = nullptr;
}

CancelToken::Registration CancelToken::on_cancel(std::function<void(const Error&)> callback) const {
  Registration registration;
  if (!state_) return registration;
  if (state_->reason) {
    callback(*state_->reason);
    return registration;
  }
  registration.slot_ = std::make_shared<Registration::Slot>(Registration::Slot{std::move(callback)});
  // Removing expired slots only when the list has doubled keeps registration at amortized constant time.
  if (state_->slots.size() >= state_->sweep_at) {
    state_->slots.remove_if([](const auto& slot) { return slot.expired(); });
    state_->sweep_at = 2 * state_->slots.size() + 16;
  }
  state_->slots.push_back(registration.slot_);
  return registration;
}

CancelSource::CancelSource() : state_(std::make_shared<CancelToken::State>()) {}

namespace {
// Passes the child that a parent cancels to State::cancel. Both thread-local pointers need no destructor, because the
// last cancel may come from a thread_local object of the host program.
thread_local const std::shared_ptr<void>* child_to_cancel = nullptr;
}  // namespace

// Children are cancelled at their position in the parent's list, but through a deque instead of recursion: scripts nest
// fibers deeper than the thread's stack.
void CancelToken::State::cancel(Error why) {
  const auto* child = std::exchange(child_to_cancel, nullptr);
  if (reason) return;
  reason = std::move(why);
  struct Frame {
    std::shared_ptr<void> keep;  // null: the caller keeps the state
    State* state;
    std::list<std::weak_ptr<Registration::Slot>> waiting;
  };
  static thread_local std::deque<Frame>* running = nullptr;
  Frame own{child ? *child : nullptr, this, std::exchange(slots, {})};
  if (child && running) return running->push_back(std::move(own));  // the outer call of cancel goes on with it
  std::deque<Frame> frames;
  frames.push_back(std::move(own));
  auto* const outer = std::exchange(running, &frames);
  while (!frames.empty()) {
    Frame& frame = frames.back();
    if (frame.waiting.empty()) {
      frames.pop_back();
      continue;
    }
    const auto slot = frame.waiting.front().lock();
    frame.waiting.pop_front();
    if (!slot || !slot->callback) continue;
    const auto callback = std::exchange(slot->callback, nullptr);
    callback(*frame.state->reason);
  }
  running = outer;
}

CancelSource::CancelSource(const CancelToken& parent) : CancelSource() {
  // The callback holds the child weakly, so that the parent does not keep a dropped child alive.
  from_parent_ = parent.on_cancel([weak = std::weak_ptr(state_)](const Error& why) {
    const std::shared_ptr<CancelToken::State> state = weak.lock();
    if (!state) return;
    const std::shared_ptr<void> child = state;
    child_to_cancel = &child;
    state->cancel(why);
  });
}

void CancelSource::cancel(Error reason) {
  auto keep = state_;  // keeps the state alive, because a callback may destroy this source
  keep->cancel(std::move(reason));
}

}  // namespace rille
