// Changes a machine's type on clouds that require a stop before and a start after the change. Loop thread only.
#pragma once

#include <functional>
#include <string>

#include "runtime/core/loop/loop.hpp"

namespace rille::provider::cloud {

enum class Power { running, stopped, between, gone };

struct Standing {
  Standing() = default;  // avoids a GCC 12 error with aggregates: loop/task.hpp
  Power power = Power::gone;
  std::string type;
};

// The driver's calls for one machine.
struct Resizing {
  Resizing() = default;
  std::string type;  // the new type
  std::function<Async<Standing>(CancelToken)> look;
  std::function<Async<>(CancelToken)> stop, start;
  std::function<Async<>(std::string type, CancelToken)> change;
};

// Does nothing if the machine runs and has the new type; continues if an earlier attempt has stopped the machine. After
// a failure or cancellation that may leave the machine stopped, starts it again before returning the error, with the
// old type if the new type was refused or sold out. Success: the machine has the new type and was started. Error state
// with http_status 404: no such machine. Any other error is the cause, and says if the machine could not be started.
Async<> resize_stopped(Loop& loop, Resizing how, CancelToken token);

}  // namespace rille::provider::cloud
