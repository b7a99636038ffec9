// Scheduler: the order in which fibers continue. Wake-ups inside the run (a child ended, a scope was cancelled) go to
// `ready`; completions of durable operations go to `deliver`, in order of seq. Before the next delivery, every fiber
// that the last delivery woke runs until it waits again. This holds live and on replay, so races between fibers have
// the same outcome. Loop thread only.
#pragma once

#include <coroutine>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "runtime/core/loop/lifetime.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::engine {

class Scheduler {
 public:
  explicit Scheduler(Loop& loop) : loop_(loop) {}

  void ready(std::function<void()> fn) {
    ready_.push_back(std::move(fn));
    schedule();
  }
  void deliver(std::function<void()> fn) {
    deliveries_.push_back(std::move(fn));
    schedule();
  }
  // Sets the function that is called whenever all woken fibers wait again. The function may queue more work.
  void on_quiet(std::function<void()> fn) { quiet_ = std::move(fn); }
  // Makes sure that the on_quiet function is called soon, even if a fiber was woken without the scheduler.
  void poke() {
    if (!scheduled_) ready([] {});
  }
  // The code of a fiber was suspended in the middle of a computation: until release() nothing else continues, as if the
  // fiber still computed.
  void hold() { held_ = true; }
  void release();
  Loop& loop() { return loop_; }

 private:
  void post();
  void schedule();
  void pump();

  Loop& loop_;
  std::deque<std::function<void()>> ready_, deliveries_;
  std::function<void()> quiet_;
  bool scheduled_ = false;
  bool held_ = false, parked_ = false;  // parked_: pump() has met the hold
  Lifetime life_;                       // last: ends first
};

// A value that is set once and resumes the one coroutine that waits for it: through the scheduler (set) or at once
// (fire). Later values are ignored.
template <class T>
class Wake {
 public:
  explicit Wake(Scheduler& scheduler) : state_(std::make_shared<State>(State{&scheduler, {}, {}})) {}
  bool is_set() const { return state_->value.has_value(); }
  void set(T value) const {
    if (state_->value) return;
    state_->value.emplace(std::move(value));
    state_->scheduler->ready([state = state_] { resume(*state); });
  }
  // Sets the value and resumes the waiter before returning. Call only from inside a delivery.
  void fire(T value) const {
    if (state_->value) return;
    state_->value.emplace(std::move(value));
    auto keep = state_;
    resume(*keep);
  }
  auto operator co_await() const {
    struct Awaiter {
      std::shared_ptr<State> state;
      bool await_ready() const noexcept { return state->value.has_value(); }
      void await_suspend(std::coroutine_handle<> h) noexcept { state->waiter = h; }
      T await_resume() { return std::move(*state->value); }
      ~Awaiter() {
        if (state) state->waiter = {};
      }
    };
    return Awaiter{state_};
  }

 private:
  struct State {
    Scheduler* scheduler;
    std::optional<T> value;
    std::coroutine_handle<> waiter;
  };
  static void resume(State& state) {
    if (auto h = std::exchange(state.waiter, {})) h.resume();
  }
  std::shared_ptr<State> state_;
};

}  // namespace rille::engine
