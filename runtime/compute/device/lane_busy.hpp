// For a process that is about to exit: exit() would wait for running lane jobs, which cannot be interrupted. A job that
// holds the last handle of a device also closes the device, which uses libraries that exit() destroys.
#pragma once

#include <chrono>

namespace rille::device {

// Whether a lane of this process has unfinished jobs. Any thread.
bool lanes_busy();

// Waits until no lane has unfinished jobs; false if some are unfinished after `most`.
bool lanes_settle(std::chrono::milliseconds most);

}  // namespace rille::device
