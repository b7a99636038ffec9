// Cancellation. A CancelSource requests cancellation; functions receive a CancelToken and check it. Cancelling a source
// also cancels its child sources; a child may also be cancelled alone. Callbacks run inside cancel(), on the loop
// thread, in the order of their registration.
// A default-constructed token is never cancelled. Loop thread only.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "runtime/core/base/error.hpp"

namespace rille {

class CancelToken {
 public:
  // Keeps a callback registered until the Registration is destroyed.
  class Registration {
   public:
    Registration() = default;
    Registration(Registration&& o) noexcept = default;
    Registration& operator=(Registration&& o) noexcept;
    ~Registration();

   private:
    friend class CancelToken;
    struct Slot {
      std::function<void(const Error&)> callback;
    };
    std::shared_ptr<Slot> slot_;
  };

  CancelToken() = default;
  bool cancelled() const { return state_ && state_->reason.has_value(); }
  const Error& reason() const { return *state_->reason; }  // call only if cancelled() is true
  // Runs `callback` on cancellation. If the token is already cancelled, runs it before on_cancel returns.
  [[nodiscard]] Registration on_cancel(std::function<void(const Error&)> callback) const;

 private:
  friend class CancelSource;
  struct State {
    std::optional<Error> reason;
    std::list<std::weak_ptr<Registration::Slot>> slots;
    std::size_t sweep_at = 16;
    void cancel(Error why);
  };
  explicit CancelToken(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

class CancelSource {
 public:
  CancelSource();
  explicit CancelSource(const CancelToken& parent);
  CancelToken token() const { return CancelToken(state_); }
  bool cancelled() const { return state_->reason.has_value(); }
  void cancel(Error reason);  // only the first call's reason counts

 private:
  std::shared_ptr<CancelToken::State> state_;
  CancelToken::Registration from_parent_;
};

}  // namespace rille
