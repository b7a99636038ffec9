// For a job that polls: it calls rest() and then posts itself again, so that the lane does not spin.
#pragma once

#include <chrono>

namespace rille::device {

// Sleeps until another job is posted to this lane, at most for `most`. Call it only in a job on a lane.
void rest(std::chrono::microseconds most);

}  // namespace rille::device
