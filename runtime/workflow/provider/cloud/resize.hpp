// How most clouds make a machine another type: it stops, is changed, and starts again.
// Loop thread only.
#pragma once

#include <functional>
#include <string>

#include "runtime/core/loop/loop.hpp"

namespace rille::provider::cloud {

enum class Power { running, stopped, between, gone };

struct Standing {
  Standing() = default;  // not an aggregate: see loop/task.hpp
  Power power = Power::gone;
  std::string type;
};

// A driver's calls for one machine.
struct Resizing {
  Resizing() = default;
  std::string type;  // that it shall have
  std::function<Async<Standing>(CancelToken)> look;
  std::function<Async<>(CancelToken)> stop, start;
  std::function<Async<>(std::string type, CancelToken)> change;
};

// One that runs and has the type already is left alone; one that an earlier attempt has stopped goes on from there.
// Whatever goes wrong once it may have been stopped, also a cancellation, it is started again before that is told: as
// it was, where the new type is refused or has no room. Success: it has the type and has been started. state,
// http_status 404: there is no such machine; else the cause; one that stands still after all says so.
Async<> resize_stopped(Loop& loop, Resizing how, CancelToken token);

}  // namespace rille::provider::cloud
