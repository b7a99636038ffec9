// For a process about to exit: it joins its lanes, and a computation cannot be interrupted. A job that holds the last
// handle of a device closes the device, for which libraries are needed that exit() destroys.
#pragma once

#include <chrono>

namespace rille::device {

// Whether a lane of this process has unfinished jobs. Any thread.
bool lanes_busy();

// Waits until no lane has; false after `most`.
bool lanes_settle(std::chrono::milliseconds most);

}  // namespace rille::device
