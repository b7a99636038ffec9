// Runs a program of the system for what it prints. Blocks: not on the loop's thread.
#pragma once

#include <functional>
#include <string>

#include "runtime/core/loop/spawn.hpp"

namespace rille::device {

// What the program writes to its descriptor `from`, 64 KB at most; its other standard descriptors are /dev/null. "": it
// cannot be started. `stopped`, empty: never, is asked every 10 ms; true ends it, and the result is "". With
// `stopped` the program is killed in any case when it has closed its output.
std::string output_of(Spawn what, int from, const std::function<bool()>& stopped = {});

}  // namespace rille::device
