// The order in which fibers continue. Wake-ups inside the run (a child ended, a scope was cancelled) go to `ready`;
// completions of durable operations go to `deliver`, in order of seq. After each delivery everything that it woke runs
// until it waits again, before the next delivery, both live and on replay; so races have the same outcome. Loop thread
// only.
#pragma once

#include <coroutine>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "runtime/core/loop/loop.hpp"

namespace rille::engine {

class Scheduler {
 public:
  explicit Scheduler(Loop& loop) : loop_(loop) {}
  ~Scheduler() { *alive_ = false; }

  void ready(std::function<void()> fn) {
    ready_.push_back(std::move(fn));
    schedule();
  }
  void deliver(std::function<void()> fn) {
    deliveries_.push_back(std::move(fn));
    schedule();
  }
  // Called whenever all woken fibers wait again; may queue more.
  void on_quiet(std::function<void()> fn) { quiet_ = std::move(fn); }
  // Requests on_quiet, even if a fiber was woken from outside the scheduler.
  void poke() {
    if (!scheduled_) ready([] {});
  }
  Loop& loop() { return loop_; }

 private:
  void schedule();
  void pump();

  Loop& loop_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::deque<std::function<void()>> ready_, deliveries_;
  std::function<void()> quiet_;
  bool scheduled_ = false;
};

// A one-shot value with one waiting coroutine, resumed by the scheduler (set) or at once (fire). First value wins.
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
  // Only from inside a delivery: resumes the waiter before returning.
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
