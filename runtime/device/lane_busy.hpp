// For a process that is about to end: its lanes are joined then, and a computation cannot be ended from outside.
#pragma once

namespace rille::device {

// Any thread. Whether a lane of this process has a job that is not finished.
bool lanes_busy();

}  // namespace rille::device
