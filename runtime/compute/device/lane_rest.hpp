// For a job that polls: it posts itself again and lets the lane rest in between.
#pragma once

#include <chrono>

namespace rille::device {

// Sleeps until another job is posted, at most that long. Only in a job on a lane.
void rest(std::chrono::microseconds most);

}  // namespace rille::device
