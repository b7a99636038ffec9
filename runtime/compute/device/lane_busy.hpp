// For a process that is about to end: its lanes are joined then, and a computation cannot be ended from outside. A job
// that holds the last handle of a device closes it, and the libraries that this needs are not there behind exit().
#pragma once

#include <chrono>

namespace rille::device {

// Any thread. Whether a lane of this process has a job that is not finished.
bool lanes_busy();

// Waits until none has; false where that takes longer.
bool lanes_settle(std::chrono::milliseconds most);

}  // namespace rille::device
