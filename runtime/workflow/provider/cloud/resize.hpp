// Changes a machine's type, as most clouds allow it: stop, change, start.
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

// The driver's calls for one machine.
struct Resizing {
  Resizing() = default;
  std::string type;  // the new type
  std::function<Async<Standing>(CancelToken)> look;
  std::function<Async<>(CancelToken)> stop, start;
  std::function<Async<>(std::string type, CancelToken)> change;
};

// A running machine that already has the type is left alone; one that an earlier attempt has stopped is continued.
// After any failure or cancellation once the machine may be stopped, it is started again before the error is returned,
// with its old type if the new one was refused or sold out. Success: it has the new type and was started. state,
// http_status 404: no such machine; otherwise the cause; the error says so if the machine could not be started.
Async<> resize_stopped(Loop& loop, Resizing how, CancelToken token);

}  // namespace rille::provider::cloud
