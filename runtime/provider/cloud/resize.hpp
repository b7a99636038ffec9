// How most clouds make a machine another type: it stops, is changed, and starts again.
// Loop thread only.
#pragma once

#include <functional>

#include "runtime/loop/loop.hpp"

namespace rille::provider::cloud {

enum class Power { running, stopped, between, gone };

// A driver's calls for one machine.
struct Resizing {
  std::function<Async<Power>(CancelToken)> power;
  std::function<Async<>(CancelToken)> stop, change, start;
};

// A change that is refused is told when the machine has been started again, as it was. state, http_status 404: there is
// no such machine; network: it does not stop. One that was stopped by an earlier attempt goes on from there.
Async<> resize_stopped(Loop& loop, Resizing how, CancelToken token);

}  // namespace rille::provider::cloud
