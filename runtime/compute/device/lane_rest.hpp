// For a job that has to ask again later: it posts itself anew, and lets the lane rest in between.
#pragma once

#include <chrono>

namespace rille::device {

// On a lane only, in a job: until another job is posted, or for that long.
void rest(std::chrono::microseconds most);

}  // namespace rille::device
