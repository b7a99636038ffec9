// Runs a system program and returns its output. Blocks: not on the loop's thread. The ProcessorClock of the calling
// thread counts the program's time.
#pragma once

#include <functional>
#include <string>

#include "runtime/core/loop/spawn.hpp"

namespace rille::device {

// The program's output on its descriptor `from`, 64 KB at most; its other standard descriptors are /dev/null. "": it
// cannot be started. `stopped` (empty: never) is called every 10 ms; if it returns true, the program is killed and the
// result is "". With `stopped` the program is killed once it has closed its output.
std::string output_of(Spawn what, int from, const std::function<bool()>& stopped = {});

}  // namespace rille::device
