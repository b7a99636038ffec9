#include "runtime/core/loop/cancel.hpp"

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

void CancelToken::State::cancel(Error why) {
  if (reason) return;
  reason = std::move(why);
  auto waiting = std::exchange(slots, {});
  for (auto& weak : waiting)
    if (auto slot = weak.lock(); slot && slot->callback) {
      auto callback = std::exchange(slot->callback, nullptr);
      callback(*reason);
    }
}

CancelSource::CancelSource(const CancelToken& parent) : CancelSource() {
  // The callback holds the child weakly, so that the parent does not keep a dropped child alive.
  from_parent_ = parent.on_cancel([weak = std::weak_ptr(state_)](const Error& why) {
    if (auto state = weak.lock()) state->cancel(why);
  });
}

void CancelSource::cancel(Error reason) {
  auto keep = state_;  // keeps the state alive, because a callback may destroy this source
  keep->cancel(std::move(reason));
}

}  // namespace rille
