// Lifetime: tells coroutines and callbacks whether the object that they use still exists. The object has a Lifetime as
// its last member, so that the Lifetime ends before all other members. A coroutine takes a Watch before it suspends and
// asks it afterwards; a callback is wrapped by guard(). Any thread may make, copy and drop a Watch or a guarded
// callback. Only the thread that destroys the object may ask the Watch or call the callback.
#pragma once

#include <memory>
#include <utility>

namespace rille {

class Lifetime {
 public:
  class Watch {
   public:
    bool ended() const { return life_.expired(); }
    bool alive() const { return !ended(); }

   private:
    friend class Lifetime;
    explicit Watch(const std::shared_ptr<char>& life) : life_(life) {}
    std::weak_ptr<char> life_;
  };

  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  Watch watch() const { return Watch(life_); }
  // A callback that calls `fn`, but does nothing once the object is gone.
  template <class Fn>
  auto guard(Fn fn) const {
    return [life = watch(), fn = std::move(fn)]<class... Args>(Args&&... args) {
      if (life.alive()) fn(std::forward<Args>(args)...);
    };
  }

 private:
  std::shared_ptr<char> life_ = std::make_shared<char>();
};

}  // namespace rille
